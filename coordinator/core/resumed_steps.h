// Steps that the job which a coordinator continues had trained or given batches to, for datasets
// that every worker reads by itself: no checkpoint has a place in these. Pure; not synchronised.
#pragma once

#include <cstdint>
#include <map>

#include "coordinator/core/server_task.h"

namespace mu {

class ResumedSteps {
 public:
  void Resume(const JobPosition& job) {
    trained_ = job.steps;
    bound_.clear();
    for (const auto& [id, function] : job.functions.unfinished) {
      // The others are counted when they get their batches.
      if (function.bound) bound_[function.work.dataset] += function.steps - function.next_step;
    }
  }
  // Of a job that trains on several datasets all trained steps: which were whose is not known.
  uint64_t Of(uint64_t dataset) const {
    const auto bound = bound_.find(dataset);
    return trained_ + (bound != bound_.end() ? bound->second : 0);
  }

 private:
  uint64_t trained_ = 0;
  std::map<uint64_t, uint64_t> bound_;  // by dataset: left to unfinished functions with batches
};

}  // namespace mu
