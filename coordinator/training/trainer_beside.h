// An evaluation of a trainer that runs while training goes on.
#pragma once

#include <atomic>
#include <string>
#include <thread>
#include <utility>

#include "absl/status/statusor.h"
#include "common/base/mutex.h"
#include "coordinator/training/trainer.h"

namespace mu {

// One evaluation of a checkpoint, on a thread of its own.
class Trainer::Beside {
 public:
  Beside(const Trainer* trainer, EvaluationPoint point, std::string checkpoint, FunctionGroup group)
      : point(point), group_(std::move(group)) {
    thread_ = std::thread([this, trainer, checkpoint = std::move(checkpoint)] {
      // A round waits for the function that a contributor is at.
      const uint32_t steps = trainer->rounds_ ? 1 : ForEachBatchOptions().steps_per_function;
      result_ = trainer->MeasureIn({.steps_per_function = steps, .group = group_, .stop = &stop_},
                                   nullptr);
      if (result_.ok()) result_->evaluation.checkpoint = checkpoint;
      done_.Notify();
    });
  }
  ~Beside() {
    stop_ = 1;
    thread_.join();
  }

  bool done() const { return done_.HasBeenNotified(); }
  // CANCELLED if `stop` asks for it.
  absl::StatusOr<Measured> Wait(const std::atomic<int>* stop);

  const EvaluationPoint point;

 private:
  const FunctionGroup group_;
  std::atomic<int> stop_{0};
  absl::StatusOr<Measured> result_ = absl::UnknownError("under way");  // until done_ its thread's
  Notification done_;
  std::thread thread_;
};

}  // namespace mu
