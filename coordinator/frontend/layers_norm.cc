#include "coordinator/frontend/layers_norm.h"

#include "absl/strings/str_cat.h"
#include "coordinator/frontend/op_support.h"

namespace mu {
namespace {

absl::Status CheckWidth(const std::string& name, int64_t width) {
  if (width > 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("layer \"", name, "\" cannot normalise ", width, " values"));
}

absl::StatusOr<Variable> CreateScale(VariableFactory& factory, const std::string& name,
                                     int64_t width, float value,
                                     const std::optional<Optimizer>& optimizer,
                                     float moving_part = 0) {
  return factory.CreateVariable({.name = name,
                                 .shape = {width},
                                 .initializer = Constant{value},
                                 .optimizer = optimizer,
                                 .trainable = moving_part == 0,
                                 .moving_part = moving_part});
}

}  // namespace

absl::StatusOr<LayerNorm> LayerNorm::Create(VariableFactory& factory, const std::string& name,
                                            int64_t width, const NormOptions& options) {
  MU_RETURN_IF_ERROR(CheckWidth(name, width));
  LayerNorm layer;
  layer.epsilon_ = options.epsilon;
  MU_ASSIGN_OR_RETURN(layer.gamma_,
                      CreateScale(factory, name + "/gamma", width, 1, options.optimizer));
  MU_ASSIGN_OR_RETURN(layer.beta_,
                      CreateScale(factory, name + "/beta", width, 0, options.optimizer));
  return layer;
}

absl::StatusOr<RmsNorm> RmsNorm::Create(VariableFactory& factory, const std::string& name,
                                        int64_t width, const NormOptions& options) {
  MU_RETURN_IF_ERROR(CheckWidth(name, width));
  RmsNorm layer;
  layer.epsilon_ = options.epsilon;
  MU_ASSIGN_OR_RETURN(layer.gamma_,
                      CreateScale(factory, name + "/gamma", width, 1, options.optimizer));
  return layer;
}

absl::StatusOr<GroupNorm> GroupNorm::Create(VariableFactory& factory, const std::string& name,
                                            int64_t channels, int64_t groups,
                                            const NormOptions& options) {
  MU_RETURN_IF_ERROR(CheckWidth(name, channels));
  if (groups < 1 || channels % groups != 0) {
    return absl::InvalidArgumentError(absl::StrCat("layer \"", name, "\" cannot cut ", channels,
                                                   " channels into ", groups, " equal groups"));
  }
  GroupNorm layer;
  layer.channels_ = channels;
  layer.groups_ = groups;
  layer.epsilon_ = options.epsilon;
  MU_ASSIGN_OR_RETURN(layer.gamma_,
                      CreateScale(factory, name + "/gamma", channels, 1, options.optimizer));
  MU_ASSIGN_OR_RETURN(layer.beta_,
                      CreateScale(factory, name + "/beta", channels, 0, options.optimizer));
  return layer;
}

Sym GroupNorm::operator()(const Operand& x) const {
  const CallScope scope(x.place());
  const Sym value = x.Bind();
  if (!value.valid()) return value;
  const Shape& shape = value.shape();
  Shape record;  // its sizes, behind the batch's
  for (int axis = 1; axis < shape.rank(); ++axis) record.Append(shape[axis]);
  if (record.rank() == 0 || !record.IsFullyKnown() || record[record.rank() - 1] != channels_) {
    return value.graph()->Fail(
        "group_norm",
        absl::InvalidArgumentError(absl::StrCat("takes [batch, ..., ", channels_,
                                                "] whose sizes behind the batch's are ",
                                                "known, got ", value.spec().ToString())),
        {});
  }
  const Sym grouped =
      Reshape(value, {-1, record.elements() / channels_, groups_, channels_ / groups_});
  const Sym centred = grouped - ReduceMean(grouped, {1, 3}, true);
  const Sym variance = ReduceMean(Square(centred), {1, 3}, true);
  Shape sizes({-1});
  for (const int64_t size : record) sizes.Append(size);
  return Reshape(centred / Sqrt(variance + epsilon_), sizes) * gamma_ + beta_;
}

absl::StatusOr<BatchNorm> BatchNorm::Create(VariableFactory& factory, const std::string& name,
                                            int64_t channels, const BatchNormOptions& options) {
  MU_RETURN_IF_ERROR(CheckWidth(name, channels));
  if (!(options.momentum >= 0 && options.momentum < 1)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "layer \"", name, "\": momentum must be at least 0 and below 1, got ", options.momentum));
  }
  BatchNorm layer;
  layer.options_ = options;
  const auto create = [&](const char* what, float value, float moving_part) {
    return CreateScale(factory, absl::StrCat(name, "/", what), channels, value,
                       moving_part == 0 ? options.optimizer : std::nullopt, moving_part);
  };
  const float part = 1.0f - options.momentum;
  MU_ASSIGN_OR_RETURN(layer.gamma_, create("gamma", 1, 0));
  MU_ASSIGN_OR_RETURN(layer.beta_, create("beta", 0, 0));
  MU_ASSIGN_OR_RETURN(layer.moving_mean_, create("moving_mean", 0, part));
  MU_ASSIGN_OR_RETURN(layer.moving_variance_, create("moving_variance", 1, part));
  return layer;
}

Sym BatchNorm::operator()(const Operand& x) const {
  const CallScope scope(x.place());
  const Sym value = x.Bind();
  if (IsTraining({value}, x.place())) return Train(value);
  return Scale(value - moving_mean_, moving_variance_);
}

Sym BatchNorm::Train(const Sym& x) const {
  std::vector<int64_t> axes;
  for (int64_t axis = 0; axis + 1 < x.shape().rank(); ++axis) axes.push_back(axis);
  if (x.valid() && axes.empty()) {
    return x.graph()->Fail(
        "batch_norm",
        absl::InvalidArgumentError(
            absl::StrCat("takes [..., channels] with a batch axis, got ", x.spec().ToString())),
        {});
  }
  const Sym mean = ReduceMean(x, axes);
  const Sym centred = x - mean;
  const Sym variance = ReduceMean(Square(centred), axes);
  MoveAverages(x, axes, mean, variance);
  return Scale(centred, variance);
}

void BatchNorm::MoveAverages(const Sym& x, const std::vector<int64_t>& axes, const Sym& mean,
                             const Sym& variance) const {
  const Sym count = Count(x, axes);
  const Sym of_sample = variance * (count / Maximum(count - 1.0f, 1.0f));
  // They have a moving_part: the servers move them towards these.
  AssignAdd(moving_mean_, mean);
  AssignAdd(moving_variance_, of_sample);
}

Sym BatchNorm::Scale(const Sym& centred, const Operand& variance) const {
  return centred * (gamma_ / Sqrt(variance + options_.epsilon)) + beta_;
}

}  // namespace mu
