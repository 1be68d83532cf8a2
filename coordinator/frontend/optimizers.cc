#include "coordinator/frontend/optimizers.h"

#include "common/optimizer/optimizer_settings.h"

namespace mu {
namespace {

template <typename Adam, typename Proto>
void SetAdam(const Adam& adam, Proto* proto) {
  proto->set_learning_rate(adam.learning_rate);
  proto->set_beta1(adam.beta1);
  proto->set_beta2(adam.beta2);
  proto->set_epsilon(adam.epsilon);
  proto->set_bias_correction(adam.bias_correction == BiasCorrection::kRow ? "row" : "job");
}

}  // namespace

Optimizer::Optimizer(const Sgd& sgd) {
  pb::SgdProto* const proto = proto_.mutable_sgd();
  proto->set_learning_rate(sgd.learning_rate);
  // Servers of before momentum know neither: they are not troubled without need.
  if (sgd.momentum != 0) proto->set_momentum(sgd.momentum);
  if (sgd.nesterov) proto->set_nesterov(true);
}

Optimizer::Optimizer(const Adagrad& adagrad) {
  pb::AdagradProto* const proto = proto_.mutable_adagrad();
  proto->set_learning_rate(adagrad.learning_rate);
  proto->set_initial_accumulator(adagrad.initial_accumulator);
  proto->set_epsilon(adagrad.epsilon);
}

Optimizer::Optimizer(const Adam& adam) { SetAdam(adam, proto_.mutable_adam()); }

Optimizer::Optimizer(const AdamW& adamw) {
  SetAdam(adamw, proto_.mutable_adamw());
  proto_.mutable_adamw()->set_weight_decay(adamw.weight_decay);
}

Optimizer::Optimizer(const Rmsprop& rmsprop) {
  pb::RmspropProto* const proto = proto_.mutable_rmsprop();
  proto->set_learning_rate(rmsprop.learning_rate);
  proto->set_rho(rmsprop.rho);
  proto->set_epsilon(rmsprop.epsilon);
  proto->set_momentum(rmsprop.momentum);
  proto->set_centered(rmsprop.centered);
}

Optimizer::Optimizer(const RowwiseAdagrad& rowwise_adagrad) {
  pb::RowwiseAdagradProto* const proto = proto_.mutable_rowwise_adagrad();
  proto->set_learning_rate(rowwise_adagrad.learning_rate);
  proto->set_initial_accumulator(rowwise_adagrad.initial_accumulator);
  proto->set_epsilon(rowwise_adagrad.epsilon);
}

Optimizer::Optimizer(const Ftrl& ftrl) {
  pb::FtrlProto* const proto = proto_.mutable_ftrl();
  proto->set_learning_rate(ftrl.learning_rate);
  proto->set_beta(ftrl.beta);
  proto->set_l1(ftrl.l1);
  proto->set_l2(ftrl.l2);
  proto->set_initial_accumulator(ftrl.initial_accumulator);
}

Optimizer::Optimizer(const Lion& lion) {
  pb::LionProto* const proto = proto_.mutable_lion();
  proto->set_learning_rate(lion.learning_rate);
  proto->set_beta1(lion.beta1);
  proto->set_beta2(lion.beta2);
  proto->set_weight_decay(lion.weight_decay);
}

absl::StatusOr<pb::OptimizerProto> ToProto(const Optimizer& optimizer) {
  MU_RETURN_IF_ERROR(CheckOptimizer(optimizer.proto()));
  return optimizer.proto();
}

}  // namespace mu
