// An evaluation of a trainer that runs while training goes on.
#pragma once

#include <atomic>
#include <functional>
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
  using MeasureFunction = std::function<absl::StatusOr<Measured>(const std::atomic<int>* stop)>;
  Beside(EvaluationPoint point, std::string checkpoint, MeasureFunction measure)
      : point(point), measure_(std::move(measure)) {
    thread_ = std::thread([this, checkpoint = std::move(checkpoint)] {
      result_ = measure_(&stop_);
      if (result_.ok()) result_->evaluation.checkpoint = checkpoint;
      done_.Notify();
    });
  }
  ~Beside() {
    stop_ = 1;
    thread_.join();
  }

  bool done() const { return done_.HasBeenNotified(); }
  // CANCELLED if `stop` asks for it. Calls `look` several times a second.
  absl::StatusOr<Measured> Wait(const std::atomic<int>* stop, const std::function<void()>& look);

  const EvaluationPoint point;

 private:
  const MeasureFunction measure_;
  std::atomic<int> stop_{0};
  absl::StatusOr<Measured> result_ = absl::UnknownError("under way");  // until done_ its thread's
  Notification done_;
  std::thread thread_;
};

}  // namespace mu
