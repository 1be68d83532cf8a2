// When an evaluation between training steps is due. Pure: the time is handed in. Not thread safe.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "absl/time/time.h"

namespace mu {

// At most one of them is set, to more than 0, else INVALID_ARGUMENT; none: no evaluation before the
// end.
struct EvalEvery {
  uint64_t steps = 0;  // of the job
  uint32_t epochs = 0;
  absl::Duration time = absl::ZeroDuration();  // since the last one ended

  bool any() const { return steps > 0 || epochs > 0 || time > absl::ZeroDuration(); }
};

class EvaluationSchedule {
 public:
  // `evaluated_steps`: of a job that is continued, how many steps its last evaluation had seen; it
  // is not due there again. 0: there was none.
  EvaluationSchedule(EvalEvery every, uint64_t evaluated_steps, absl::Time now)
      : every_(every), evaluated_steps_(evaluated_steps), last_(now) {}

  // How many steps may follow these before one is due by its steps.
  uint64_t StepsUntilDue(uint64_t steps) const {
    if (every_.steps == 0) return std::numeric_limits<uint64_t>::max();
    return every_.steps - steps % every_.steps;
  }
  // After so many steps of the job. `ended_epoch`: the epoch, from 1, whose last step is the last
  // of these; 0: they end within one. `asked_every`: it was asked so many steps before, and not
  // since; what became due in between is due now.
  bool Due(uint64_t steps, uint64_t ended_epoch, absl::Time now, uint64_t asked_every = 1) const {
    if (steps == 0 || steps == evaluated_steps_) return false;
    // Not what was evaluated within that time, where rounds do not end as they did before.
    if (every_.steps > 0)
      return steps % every_.steps < std::min(asked_every, steps - evaluated_steps_);
    if (every_.epochs > 0) return ended_epoch > 0 && ended_epoch % every_.epochs == 0;
    return every_.time > absl::ZeroDuration() && now - last_ >= every_.time;
  }
  // The last one has not ended yet.
  void UnderWay(absl::Time now) { last_ = now; }
  void Evaluated(uint64_t steps, absl::Time now) {
    evaluated_steps_ = steps;
    last_ = now;
  }

 private:
  const EvalEvery every_;
  uint64_t evaluated_steps_;
  absl::Time last_;
};

}  // namespace mu
