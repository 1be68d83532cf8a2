// The factor of the learning rates at a step of the job: a linear warm-up, then a schedule. A pure
// function of the step's place in the job, so that it does not depend on how steps are packed into
// functions, nor on who runs them or how often. Only IEEE operations: every machine computes the
// same bits.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "proto/schedule.pb.h"

namespace mu {

// `step` counts from 0. The warm-up ends with step warmup_steps - 1, which has the whole rate; the
// schedule's own step 0 is the next one.
float RateScale(const muster::ScheduleProto& schedule, uint64_t warmup_steps, uint64_t step);

struct ScheduleProblem {
  std::string key;      // of ScheduleProto, such as "cosine.end_factor", or "step" alone
  std::string message;  // what is wrong, after the key
  std::string remedy;   // may be empty
};

// All that is wrong. `rest_of_job`: steps that are not given follow from the job's (CloseSchedule).
std::vector<ScheduleProblem> ProblemsOf(const muster::ScheduleProto& schedule, bool rest_of_job);

// Lets a schedule without `steps` end with the job, which has so many steps, the warm-up among
// them.
muster::ScheduleProto CloseSchedule(muster::ScheduleProto schedule, uint64_t warmup_steps,
                                    uint64_t steps);

}  // namespace mu
