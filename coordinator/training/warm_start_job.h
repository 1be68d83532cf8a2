// `warm_start` of a job file.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/cluster/warm_start.h"
#include "coordinator/frontend/paper_factory.h"
#include "proto/job.pb.h"

namespace mu {

WarmStartSpec WarmStartOf(const muster::JobProto& job);

// The checkpoint's directory: the newest where a run's is named. NOT_FOUND.
absl::StatusOr<std::string> WarmStartCheckpoint(const muster::JobProto& job);

// All that is wrong with it, given what the model creates; each "KEY: a sentence". `notes` gets
// what may be meant.
std::vector<std::string> CheckWarmStart(const muster::JobProto& job, const PaperFactory& created,
                                        std::vector<std::string>* notes);

}  // namespace mu
