// Batches that the job which a coordinator continues had given to functions, for datasets that
// every worker reads by itself: no checkpoint has a place in these. Pure; not synchronised.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "coordinator/core/server_task.h"

namespace mu {

class ResumedSteps {
 public:
  void Resume(const JobPosition& job) {
    bound_.clear();
    if (job.own_steps.has_value()) {
      steps_ = *job.own_steps;
      return;
    }
    // Which trained steps were whose is not known: each dataset has all of them.
    steps_ = {.by_dataset = {}, .others = job.steps};
    for (const auto& [id, function] : job.functions.unfinished) {
      // The others are counted when they get their batches.
      if (function.bound) bound_[function.work.dataset] += function.steps - function.next_step;
    }
  }
  uint64_t Of(uint64_t dataset, const std::string& name) const {
    const auto bound = bound_.find(dataset);
    const auto said = steps_.by_dataset.find(name);
    return (said != steps_.by_dataset.end() ? said->second : steps_.others) +
           (bound != bound_.end() ? bound->second : 0);
  }
  // What the next checkpoint says of datasets that this program has not used yet.
  const OwnSteps& steps() const { return steps_; }

 private:
  OwnSteps steps_;
  // Of a position that does not say, by dataset: left to unfinished functions with batches.
  std::map<uint64_t, uint64_t> bound_;
};

}  // namespace mu
