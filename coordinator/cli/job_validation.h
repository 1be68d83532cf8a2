// What a job's values must satisfy, beyond their types: a pure function of the message.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "proto/job.pb.h"

namespace mu {

// What the job is wanted for; decides which data it needs.
enum class JobUse { kTrain, kEval, kPredict, kCheck, kExport };  // kExport: none

inline constexpr uint32_t kDefaultBatchSize = 512;

struct JobProblem {
  std::string key;      // path of the key, such as "model.dlrm.top_mlp"
  std::string message;  // what is wrong, after "`key` "
  std::string remedy;
  bool required = false;  // if the key was not written at all, then it is missing
};

// All that is wrong with the job, in the order of the message's fields. Defaults need not be filled
// in.
std::vector<JobProblem> ValidateJob(const muster::JobProto& job, JobUse use);

// The sources that `use` reads, by key ("data.train").
std::vector<std::pair<std::string, const muster::SourceProto*>> SourcesFor(
    JobUse use, const muster::JobDataProto& data);

// Fills in every key with a default that was not written (docs/job_file.md lists them).
void FillJobDefaults(muster::JobProto* job);

// Whether a key was written.
bool HasField(const google::protobuf::Message& message, absl::string_view name);

// Parts of ValidateJob, each in a file of its own.
void ValidateSource(const muster::SourceProto& source, const std::string& key,
                    std::vector<JobProblem>* problems);
// `format` is its bit (data_keys.h).
void ValidateColumns(const muster::SourceProto& source, unsigned format, const std::string& key,
                     std::vector<JobProblem>* problems);
void ValidateModel(const muster::JobProto& job, JobUse use, std::vector<JobProblem>* problems);
void ValidateOptimizers(const muster::JobProto& job, std::vector<JobProblem>* problems);
void ValidateConsistency(const muster::JobProto& job, std::vector<JobProblem>* problems);
void ValidateRecovery(const muster::JobProto& job, std::vector<JobProblem>* problems);
// Metrics, when they are measured, and who goes by them.
void ValidateEvaluation(const muster::JobProto& job, std::vector<JobProblem>* problems);

}  // namespace mu
