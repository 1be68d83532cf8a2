// What a job's directory says of the job that runs or ran in it: job_dir/job.json. With it a
// coordinator that is started again knows whether it continues, and that it is the same job.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/status.h"
#include "proto/dataset.pb.h"
#include "proto/job.pb.h"

namespace mu {

struct JobRecord {
  std::string status;  // running (or died), stopped, failed (what is wrong is the job), done
  // The run is not over, whatever `status` says: a coordinator starts to continue it or to begin a
  // new one, and does not train yet.
  bool starting = false;
  // The coordinator's epoch that began it: older checkpoints are another run's
  uint64_t first_epoch = 0;
  // Of the job, at which warm-up and schedule begin: another run's steps are before it
  uint64_t first_step = 0;
  // Of the job, where they end with each lease of the data: what warm-up and schedule were made
  // with. 0: of another kind of job, or of an earlier program, which divided the steps.
  uint64_t rounds = 0;
  std::string checkpoint;  // another run's, whose values it began with; empty: initial values
  // What the command named for it: the checkpoint, or a run's folder, which gets newer ones.
  // Records of earlier programs do not say.
  std::string named_checkpoint;
  // Of the texts in data.train's vocabularies, by column (FingerprintsOf). Records of earlier
  // programs have none.
  std::map<std::string, std::string> vocabularies;
  pb::JobProto job;
};

// Of what decides what is trained: model, training data, optimizer, training, seed. Not of
// data.train.on_bad_record: a run that a bad record has ended may be continued with `skip`.
uint64_t JobFingerprint(const pb::JobProto& job);

// NOT_FOUND if there is none, DATA_LOSS if it cannot be read.
absl::StatusOr<JobRecord> ReadJobRecord(const std::string& job_dir);
absl::Status WriteJobRecord(const std::string& job_dir, const JobRecord& record);

// Whether a command that names this path, a checkpoint or a run's folder, begins with what the
// recorded run began with: whatever checkpoints the folder has got since, or lost.
bool BeganWith(const JobRecord& record, const std::string& named);

// Whether the recorded run has taken a checkpoint, as the newest one of its folder says: others
// there may be an earlier run's. One whose manifest cannot be read counts as its own, so that
// nothing begins again in its place.
bool HasOwnCheckpoint(const JobRecord& record, const std::string& job_dir);

// Fingerprints of the texts in a data set's vocabularies, by column, for JobRecord. The files are
// read; one that cannot be read is left out.
std::map<std::string, std::string> FingerprintsOf(const muster::DatasetProto& dataset);

// The columns whose vocabularies' texts are others there than here, as far as both know them.
std::vector<std::string> OtherVocabularies(const JobRecord& there, const JobRecord& here);

// What differs between two jobs' parts of the fingerprint, a line each; empty: nothing.
std::string JobDifferences(const pb::JobProto& there, const pb::JobProto& here);

}  // namespace mu
