// Layers that normalise, and dropout.
#pragma once

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "coordinator/frontend/neural_ops.h"
#include "coordinator/frontend/variable_factory.h"

namespace mu {

struct NormOptions {
  float epsilon = 1e-5f;
  std::optional<Optimizer> optimizer = std::nullopt;
};

// Each row of x [..., width] gets the mean beta and the deviation gamma. Variables NAME/gamma and
// NAME/beta [width], 1 and 0 at first.
class LayerNorm {
 public:
  static absl::StatusOr<LayerNorm> Create(VariableFactory& factory, const std::string& name,
                                          int64_t width, const NormOptions& options = {});
  Sym operator()(const Operand& x) const { return LayerNormalize(x, gamma_, beta_, epsilon_); }

 private:
  Variable gamma_;
  Variable beta_;
  float epsilon_ = 0;
};

// The same without means: x / sqrt(mean of its squares + epsilon) * gamma.
class RmsNorm {
 public:
  static absl::StatusOr<RmsNorm> Create(VariableFactory& factory, const std::string& name,
                                        int64_t width, const NormOptions& options = {});
  Sym operator()(const Operand& x) const { return RmsNormalize(x, gamma_, epsilon_); }

 private:
  Variable gamma_;
  float epsilon_ = 0;
};

// Each of `groups` equal groups of the channels of x [batch, ..., channels] is normalised by itself
// in each record, over its channels and the axes between; a channel then gets the mean beta and the
// deviation gamma (Wu, He, "Group Normalization", 2018). It does not depend on the batch, so it
// needs no averages: better than BatchNorm for small batches. With as many groups as channels it is
// instance normalisation. Variables NAME/gamma and NAME/beta [channels], 1 and 0 at first.
//
// All sizes but the batch's must be known.
class GroupNorm {
 public:
  // INVALID_ARGUMENT unless groups divide the channels.
  static absl::StatusOr<GroupNorm> Create(VariableFactory& factory, const std::string& name,
                                          int64_t channels, int64_t groups,
                                          const NormOptions& options = {});
  Sym operator()(const Operand& x) const;

 private:
  Variable gamma_;
  Variable beta_;
  int64_t channels_ = 0;
  int64_t groups_ = 0;
  float epsilon_ = 0;
};

struct BatchNormOptions {
  float epsilon = 1e-5f;
  // A step moves the averages by 1 - momentum of their distance from the batch's moments, as they
  // are when a server applies the step.
  float momentum = 0.9f;
  std::optional<Optimizer> optimizer = std::nullopt;
};

// Each channel of x [..., channels] gets the mean beta and the deviation gamma (Ioffe, Szegedy,
// "Batch Normalization", 2015). A function that trains (FunctionBuilder::Train) takes the moments
// of its batch over all other axes, and moves the averages on the servers, each step once; another
// function takes the averages. Workers train at the same time, so averages are of what all of them
// see.
//
// Variables NAME/gamma and NAME/beta [channels]; NAME/moving_mean and NAME/moving_variance, which
// are not trained. The variance is that of a sample (divided by n - 1), as PyTorch's.
class BatchNorm {
 public:
  static absl::StatusOr<BatchNorm> Create(VariableFactory& factory, const std::string& name,
                                          int64_t channels, const BatchNormOptions& options = {});
  Sym operator()(const Operand& x) const;

 private:
  Sym Train(const Sym& x) const;
  void MoveAverages(const Sym& x, const std::vector<int64_t>& axes, const Sym& mean,
                    const Sym& variance) const;
  Sym Scale(const Sym& centred, const Operand& variance) const;

  Variable gamma_;
  Variable beta_;
  Variable moving_mean_;
  Variable moving_variance_;
  BatchNormOptions options_;
};

// In a function that trains, 0 with probability `rate` and x / (1 - rate) otherwise; else x.
class DropoutLayer {
 public:
  explicit DropoutLayer(float rate) : rate_(rate) {}
  Sym operator()(const Operand& x) const { return rate_ == 0 ? x.Bind() : Dropout(x, rate_); }

 private:
  float rate_;
};

}  // namespace mu
