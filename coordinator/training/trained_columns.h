// Whether the columns of data to evaluate or predict mean what they meant in training: a text must
// become the id whose row was trained, and a number be scaled as those were.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/frontend/model.h"
#include "proto/dataset.pb.h"
#include "proto/job.pb.h"

namespace mu {

// The columns that a model was trained with, or will be, and the model (trained_model.h).
struct TrainedColumns {
  muster::DatasetProto dataset;
  // Fingerprints of its vocabularies' texts, by column; of those that are not here the paths are
  // compared.
  std::map<std::string, std::string> vocabularies;
  std::string where = "data.train";  // for messages
  muster::ModelProto model;          // not set: it is not known
  std::string record;                // the run's job.json; empty: the job's own
};

// Those of the job's own data.train. NOT_FOUND if it has none; other codes as DatasetOf.
absl::StatusOr<TrainedColumns> TrainedColumnsOf(const muster::JobProto& job);

// Those of the run that took `checkpoint` (RUN/checkpoints/ckpt-N), by its record RUN/job.json,
// which stays as it is when a job file is edited. NOT_FOUND if only the user knows: the checkpoint
// lies alone, or a program has trained in RUN since. The other errors must not pass for that:
// FAILED_PRECONDITION if the checkpoint is older than the run that the record is of; DATA_LOSS if
// the record, or the manifest, is damaged; those of the file system if it cannot be read.
absl::StatusOr<TrainedColumns> TrainedColumnsOfCheckpoint(const std::string& checkpoint);
// What the record says of a run's folder, or its folder of checkpoints. NOT_FOUND and errors of the
// record as above.
absl::StatusOr<TrainedColumns> TrainedColumnsOfRun(const std::string& run);

// The columns that the model reads for a purpose, a list or a sequence by its own name.
std::set<std::string> ColumnsReadBy(const Model& model, DataPurpose purpose);

// "KEY: a sentence; what to do" for each column in `used` of `dataset` (named data.eval, ...) that
// differs from the trained one of its name; also for the columns of a cross in `used`, as far as
// the cross is another one by that. `vocabularies`: of the dataset, as TrainedColumns has them.
// Pure.
std::vector<std::string> CompareColumns(const TrainedColumns& trained,
                                        const muster::DatasetProto& dataset,
                                        const std::map<std::string, std::string>& vocabularies,
                                        const std::set<std::string>& used);

// The same of labels whose positive texts are all others than in training: then either the files
// write them in another way, or 0 and 1 have changed places. The metrics of a model are those of
// what is written here, so this is no error.
std::vector<std::string> ComparePositives(const TrainedColumns& trained,
                                          const muster::DatasetProto& dataset,
                                          const std::set<std::string>& used);

}  // namespace mu
