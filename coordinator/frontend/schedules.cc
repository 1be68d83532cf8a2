#include "coordinator/frontend/schedules.h"

namespace mu {

RateSchedule::RateSchedule(const StepDecay& decay) {
  pb::StepDecayProto* const proto = proto_.mutable_step();
  if (decay.every > 0) proto->set_every(decay.every);
  proto->mutable_at()->Assign(decay.at.begin(), decay.at.end());
  proto->set_factor(decay.factor);
}

RateSchedule::RateSchedule(const ExponentialDecay& decay) {
  proto_.mutable_exponential()->set_steps(decay.steps);
  proto_.mutable_exponential()->set_factor(decay.factor);
}

RateSchedule::RateSchedule(const PolynomialDecay& decay) {
  proto_.mutable_polynomial()->set_steps(decay.steps);
  proto_.mutable_polynomial()->set_power(decay.power);
  proto_.mutable_polynomial()->set_end_factor(decay.end_factor);
}

RateSchedule::RateSchedule(const CosineDecay& decay) {
  proto_.mutable_cosine()->set_steps(decay.steps);
  proto_.mutable_cosine()->set_end_factor(decay.end_factor);
}

}  // namespace mu
