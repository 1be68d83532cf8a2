// Optimizers as users write them; docs/reference/optimizers.md has the formula of each.
//
//   {.name = "items", .rows = 1000, .dim = 16, .optimizer = mu::Adam{.learning_rate = 0.001f}}
#pragma once

#include "absl/status/statusor.h"
#include "common/base/status.h"
#include "proto/optimizer.pb.h"

namespace mu {

// value -= learning_rate * gradient; with momentum as PyTorch's SGD
struct Sgd {
  float learning_rate = 0.01f;
  float momentum = 0.0f;
  bool nesterov = false;
};

// Duchi, Hazan, Singer (2011): accumulator += g * g; value -= learning_rate * g /
// (sqrt(accumulator) + epsilon)
struct Adagrad {
  float learning_rate = 0.01f;
  float initial_accumulator = 0.0f;
  float epsilon = 1e-10f;
};

// What corrects the bias of Adam's moments: steps of the job (as PyTorch's SparseAdam), or steps
// that touched the row.
enum class BiasCorrection { kJob, kRow };

// Kingma and Ba (2015). Of a table, a step changes only the rows that it read.
struct Adam {
  float learning_rate = 0.001f;
  float beta1 = 0.9f;
  float beta2 = 0.999f;
  float epsilon = 1e-8f;
  BiasCorrection bias_correction = BiasCorrection::kJob;
};

// Loshchilov and Hutter (2019): Adam with decoupled weight decay.
struct AdamW {
  float learning_rate = 0.001f;
  float beta1 = 0.9f;
  float beta2 = 0.999f;
  float epsilon = 1e-8f;
  BiasCorrection bias_correction = BiasCorrection::kJob;
  float weight_decay = 0.01f;
};

// Tieleman and Hinton (2012), as PyTorch's RMSprop.
struct Rmsprop {
  float learning_rate = 0.01f;
  float rho = 0.99f;
  float epsilon = 1e-8f;
  float momentum = 0.0f;
  bool centered = false;
};

// Adagrad with one sum for each row, as FBGEMM and TorchRec have it.
struct RowwiseAdagrad {
  float learning_rate = 0.01f;
  float initial_accumulator = 0.0f;
  float epsilon = 1e-8f;
};

// FTRL-proximal: McMahan et al. (2013).
struct Ftrl {
  float learning_rate = 0.1f;
  float beta = 1.0f;
  float l1 = 0.0f;
  float l2 = 0.0f;
  float initial_accumulator = 0.0f;
};

// Chen et al. (2023): the sign of a momentum. One slot, where Adam has two.
struct Lion {
  float learning_rate = 0.0001f;
  float beta1 = 0.9f;
  float beta2 = 0.99f;
  float weight_decay = 0.0f;
};

// One of them.
class Optimizer {
 public:
  // NOLINTBEGIN(google-explicit-constructor)
  Optimizer(const Sgd& sgd);
  Optimizer(const Adagrad& adagrad);
  Optimizer(const Adam& adam);
  Optimizer(const AdamW& adamw);
  Optimizer(const Rmsprop& rmsprop);
  Optimizer(const RowwiseAdagrad& rowwise_adagrad);
  Optimizer(const Ftrl& ftrl);
  Optimizer(const Lion& lion);
  // NOLINTEND(google-explicit-constructor)
  explicit Optimizer(pb::OptimizerProto proto) : proto_(std::move(proto)) {}

  const pb::OptimizerProto& proto() const { return proto_; }

 private:
  pb::OptimizerProto proto_;
};

// INVALID_ARGUMENT for a learning rate that is not positive and finite, and the like.
absl::StatusOr<pb::OptimizerProto> ToProto(const Optimizer& optimizer);

}  // namespace mu
