#include "coordinator/frontend/specs.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "common/optimizer/optimizer_settings.h"
#include "common/sharding/definitions.h"
#include "common/sharding/partition.h"

namespace mu {
namespace {

template <typename... Visitors>
struct Overloaded : Visitors... {
  using Visitors::operator()...;
};
template <typename... Visitors>
Overloaded(Visitors...) -> Overloaded<Visitors...>;

absl::Status CheckPartitioner(const Partitioner& partitioner, pb::PartitionerProto* proto) {
  const uint64_t given = std::visit(Overloaded{[](AutomaticPartitioner) -> uint64_t { return 1; },
                                               [&](FixedShards p) -> uint64_t {
                                                 proto->set_fixed_shards(p.shards);
                                                 return p.shards;
                                               },
                                               [&](MinSize p) -> uint64_t {
                                                 proto->set_min_size(p.bytes);
                                                 return p.bytes;
                                               },
                                               [&](MaxSize p) -> uint64_t {
                                                 proto->set_max_size(p.bytes);
                                                 return p.bytes;
                                               }},
                                    partitioner);
  if (given > 0) return absl::OkStatus();
  return absl::InvalidArgumentError("the partitioner's number must be above 0");
}

absl::Status CheckShape(const Shape& shape) {
  int64_t elements = 1;
  for (const int64_t dim : shape) {
    if (dim <= 0 || elements > (int64_t{1} << 40) / dim) {
      return absl::InvalidArgumentError(absl::StrCat(
          "shape ", shape.ToString(), " needs known sizes above 0 (and below 2^40 values)"));
    }
    elements *= dim;
  }
  return absl::OkStatus();
}

// What a variable or table gets that is trained with `optimizer`.
absl::Status SetOptimizer(const Optimizer& optimizer, float learning_rate_factor,
                          pb::OptimizerProto* proto) {
  if (!(learning_rate_factor > 0 && std::isfinite(learning_rate_factor))) {
    return absl::InvalidArgumentError(
        absl::StrCat("learning_rate_factor must be above 0, got ", learning_rate_factor,
                     "; to train it not at all, set trainable = false"));
  }
  MU_ASSIGN_OR_RETURN(*proto, ToProto(optimizer));
  *proto = ScaleLearningRate(*std::move(proto), learning_rate_factor);
  return CheckOptimizer(*proto);
}

absl::Status CheckMovingPart(const VariableSpec& spec) {
  if (spec.moving_part == 0) return absl::OkStatus();
  if (!(spec.moving_part > 0 && spec.moving_part <= 1)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "moving_part must be above 0 and at most 1 (0: none), got ", spec.moving_part));
  }
  if (spec.dtype != kFloat32) return absl::InvalidArgumentError("moving_part needs dtype float32");
  if (!spec.trainable) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "a variable with moving_part takes no gradients; set trainable = false");
}

// What servers and workers would refuse. Nothing is ever taken out of a job's definitions: one that
// is bad would keep a job from its checkpoints and from recovery.
absl::Status CheckWhole(pb::VariableProto variable) {
  for (const int64_t start : PartitionStarts(variable)) variable.add_partition_starts(start);
  return CheckVariableParts(variable);
}

absl::Status CheckWhole(pb::TableProto table) {
  // A number that the coordinator is yet to choose is checked when it has chosen.
  if (table.partitions() == 0) table.set_partitions(kMostTablePartitions);
  return CheckTableParts(table);
}

}  // namespace

Uniform GlorotUniform(int64_t fan_in, int64_t fan_out) {
  const float limit = static_cast<float>(std::sqrt(6.0 / static_cast<double>(fan_in + fan_out)));
  return {-limit, limit};
}

absl::StatusOr<pb::InitializerProto> ToProto(const Initializer& initializer) {
  pb::InitializerProto proto;
  bool finite = true;
  bool ordered = true;
  std::visit(Overloaded{[](Zeros) {},
                        [&](Constant c) {
                          finite = std::isfinite(c.value);
                          proto.mutable_constant()->set_value(c.value);
                        },
                        [&](Uniform u) {
                          finite = std::isfinite(u.low) && std::isfinite(u.high);
                          ordered = u.low <= u.high;
                          proto.mutable_uniform()->set_low(u.low);
                          proto.mutable_uniform()->set_high(u.high);
                        },
                        [&](Normal n) {
                          finite = std::isfinite(n.mean) && std::isfinite(n.stddev);
                          ordered = n.stddev >= 0;
                          proto.mutable_normal()->set_mean(n.mean);
                          proto.mutable_normal()->set_stddev(n.stddev);
                        }},
             initializer);
  if (!finite) return absl::InvalidArgumentError("initializer: its numbers must be finite");
  if (!ordered) {
    return absl::InvalidArgumentError(
        "initializer: low must not be above high, nor stddev negative");
  }
  return proto;
}

absl::StatusOr<pb::VariableProto> VariableSpec::ToProto() const {
  const auto fill = [&]() -> absl::StatusOr<pb::VariableProto> {
    pb::VariableProto proto;
    if (name.empty()) return absl::InvalidArgumentError("name must not be empty");
    proto.set_name(name);
    if (dtype != kFloat32 && dtype != kInt32 && dtype != kInt64) {
      const absl::string_view type = DTypeName(dtype);
      return absl::InvalidArgumentError(
          absl::StrCat("dtype must be float32, int32 or int64, got ", type));
    }
    proto.set_dtype(dtype);
    MU_RETURN_IF_ERROR(CheckShape(shape));
    *proto.mutable_shape() = shape.ToProto();
    MU_ASSIGN_OR_RETURN(*proto.mutable_initializer(), mu::ToProto(initializer));
    if (optimizer.has_value()) {
      if (dtype != kFloat32)
        return absl::InvalidArgumentError("an integer variable takes no optimizer");
      pb::OptimizerProto valid;
      MU_RETURN_IF_ERROR(SetOptimizer(*optimizer, learning_rate_factor, &valid));
      // What is not trained needs no slots.
      if (trainable) *proto.mutable_optimizer() = std::move(valid);
    }
    proto.set_trainable(trainable && dtype == kFloat32);
    proto.set_moving_average(moving_average);
    MU_RETURN_IF_ERROR(CheckMovingPart(*this));
    proto.set_moving_part(moving_part);
    if (partitioner.has_value() && !std::holds_alternative<AutomaticPartitioner>(*partitioner))
      MU_RETURN_IF_ERROR(CheckPartitioner(*partitioner, proto.mutable_partitioner()));
    MU_RETURN_IF_ERROR(CheckWhole(proto));
    return proto;
  };
  absl::StatusOr<pb::VariableProto> proto = fill();
  if (!proto.ok()) return Annotate(proto.status(), absl::StrCat("variable \"", name, "\""));
  return proto;
}

absl::StatusOr<pb::TableProto> EmbeddingTableSpec::ToProto() const {
  const auto fill = [&]() -> absl::StatusOr<pb::TableProto> {
    pb::TableProto proto;
    if (name.empty()) return absl::InvalidArgumentError("name must not be empty");
    proto.set_name(name);
    if (rows <= 0)
      return absl::InvalidArgumentError(absl::StrCat("rows must be above 0, got ", rows));
    proto.set_rows(static_cast<uint64_t>(rows));
    if (dim <= 0) return absl::InvalidArgumentError(absl::StrCat("dim must be above 0, got ", dim));
    if (dim > kMostTableDim) {
      return absl::InvalidArgumentError(absl::StrCat("dim must be at most ", kMostTableDim,
                                                     ", got ", dim,
                                                     "; divide the columns among several tables"));
    }
    proto.set_dim(static_cast<uint32_t>(dim));
    MU_ASSIGN_OR_RETURN(*proto.mutable_initializer(), mu::ToProto(initializer));
    if (optimizer.has_value()) {
      pb::OptimizerProto valid;
      MU_RETURN_IF_ERROR(SetOptimizer(*optimizer, learning_rate_factor, &valid));
      if (trainable) *proto.mutable_optimizer() = std::move(valid);
    }
    proto.set_partitions(partitions);
    MU_RETURN_IF_ERROR(CheckWhole(proto));
    return proto;
  };
  absl::StatusOr<pb::TableProto> proto = fill();
  if (!proto.ok()) return Annotate(proto.status(), absl::StrCat("embedding table \"", name, "\""));
  return proto;
}

}  // namespace mu
