#include "common/optimizer/schedule.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "common/optimizer/exact_math.h"

namespace mu {
namespace {

using muster::ScheduleProto;

// How much of the way is left: 1 at step 0, 0 from step `steps` on.
double Left(uint64_t step, uint64_t steps) {
  return step >= steps ? 0.0 : static_cast<double>(steps - step) / static_cast<double>(steps);
}

double StepFactor(const muster::StepDecayProto& decay, uint64_t step) {
  uint64_t times = decay.every() > 0 ? step / decay.every() : 0;
  for (const uint64_t at : decay.at()) times += step >= at ? 1 : 0;
  return IntegerPower(decay.factor(), times);
}

double PolynomialFactor(const muster::PolynomialDecayProto& decay, uint64_t step) {
  const double left = Left(step, decay.steps());
  const double power = decay.has_power() ? decay.power() : 1;
  const double curve = left == 0 ? 0 : power == 1 ? left : RealPower(left, power);
  return decay.end_factor() + (1.0 - decay.end_factor()) * curve;
}

double CosineFactor(const muster::CosineDecayProto& decay, uint64_t step) {
  const double curve = (1 + CosineOfPi(1 - Left(step, decay.steps()))) / 2;
  return decay.end_factor() + (1.0 - decay.end_factor()) * curve;
}

double FactorOf(const ScheduleProto& schedule, uint64_t step) {
  switch (schedule.kind_case()) {
    case ScheduleProto::kStep:
      return StepFactor(schedule.step(), step);
    case ScheduleProto::kExponential:
      return RealPower(
          schedule.exponential().factor(),
          static_cast<double>(step) / static_cast<double>(schedule.exponential().steps()));
    case ScheduleProto::kPolynomial:
      return PolynomialFactor(schedule.polynomial(), step);
    case ScheduleProto::kCosine:
      return CosineFactor(schedule.cosine(), step);
    case ScheduleProto::kConstant:
    case ScheduleProto::KIND_NOT_SET:
      break;
  }
  return 1;
}

class Problems {
 public:
  void Add(const std::string& key, const std::string& message, const std::string& remedy = "") {
    list_.push_back({key, message, remedy});
  }
  void CheckFactor(const std::string& key, float factor) {
    if (!(factor > 0 && factor <= 1)) Add(key, "must be above 0 and at most 1", "0.1 is usual");
  }
  void CheckEnd(const std::string& kind, bool rest_of_job, bool has_steps, uint64_t steps,
                float end_factor) {
    if (has_steps ? steps == 0 : !rest_of_job) {
      Add(kind + ".steps", "must be at least 1",
          rest_of_job ? "leave it out for the rest of the job" : "");
    }
    if (!(end_factor >= 0 && end_factor <= 1))
      Add(kind + ".end_factor", "must be from 0 to 1", "leave it out for 0");
  }
  void CheckStep(const muster::StepDecayProto& step) {
    if (step.has_every() == !step.at().empty()) {
      Add("step", "needs either `every` or `at`", "write every: 10000, or at: [10000, 20000]");
    } else if (step.has_every() && step.every() == 0) {
      Add("step.every", "must be at least 1");
    }
    for (int i = 1; i < step.at_size(); ++i) {
      if (step.at(i) <= step.at(i - 1))
        Add(absl::StrCat("step.at[", i, "]"), "must be above the one before it");
    }
    CheckFactor("step.factor", step.factor());
  }
  std::vector<ScheduleProblem> Take() { return std::move(list_); }

 private:
  std::vector<ScheduleProblem> list_;
};

}  // namespace

float RateScale(const ScheduleProto& schedule, uint64_t warmup_steps, uint64_t step) {
  if (step + 1 < warmup_steps)
    return static_cast<float>(step + 1) / static_cast<float>(warmup_steps);
  return static_cast<float>(FactorOf(schedule, step - std::min(step, warmup_steps)));
}

std::vector<ScheduleProblem> ProblemsOf(const ScheduleProto& schedule, bool rest_of_job) {
  Problems problems;
  switch (schedule.kind_case()) {
    case ScheduleProto::kStep:
      problems.CheckStep(schedule.step());
      break;
    case ScheduleProto::kExponential:
      if (schedule.exponential().steps() == 0)
        problems.Add("exponential.steps", "must be at least 1", "10000 is usual");
      problems.CheckFactor("exponential.factor", schedule.exponential().factor());
      break;
    case ScheduleProto::kPolynomial: {
      const auto& decay = schedule.polynomial();
      problems.CheckEnd("polynomial", rest_of_job, decay.has_steps(), decay.steps(),
                        decay.end_factor());
      if (decay.has_power() && !(decay.power() > 0 && std::isfinite(decay.power())))
        problems.Add("polynomial.power", "must be above 0", "leave it out for 1, a straight line");
      break;
    }
    case ScheduleProto::kCosine:
      problems.CheckEnd("cosine", rest_of_job, schedule.cosine().has_steps(),
                        schedule.cosine().steps(), schedule.cosine().end_factor());
      break;
    case ScheduleProto::kConstant:
    case ScheduleProto::KIND_NOT_SET:
      break;
  }
  return problems.Take();
}

ScheduleProto CloseSchedule(ScheduleProto schedule, uint64_t warmup_steps, uint64_t steps) {
  const uint64_t rest = std::max<uint64_t>(1, steps - std::min(steps, warmup_steps));
  if (schedule.has_polynomial() && !schedule.polynomial().has_steps())
    schedule.mutable_polynomial()->set_steps(rest);
  if (schedule.has_cosine() && !schedule.cosine().has_steps())
    schedule.mutable_cosine()->set_steps(rest);
  return schedule;
}

}  // namespace mu
