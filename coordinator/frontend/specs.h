// What users write to describe variables and tables:
//
//   c.CreateEmbeddingTable({.name = "items", .rows = 1000, .dim = 16, .optimizer =
//   mu::Adagrad{.learning_rate = 0.05f}});
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>

#include "absl/status/statusor.h"
#include "common/base/status.h"
#include "common/tensor/dtype.h"
#include "common/tensor/shape.h"
#include "coordinator/frontend/dataset_spec.h"
#include "coordinator/frontend/optimizers.h"
#include "proto/table.pb.h"

namespace mu {

// Initial values are a pure function of the job's seed, the name and the row.
struct Zeros {};
struct Constant {
  float value = 0.0f;
};
struct Uniform {
  float low = -1.0f;
  float high = 1.0f;
};
struct Normal {
  float mean = 0.0f;
  float stddev = 1.0f;
};
using Initializer = std::variant<Zeros, Constant, Uniform, Normal>;

// Glorot and Bengio (2010): uniform within sqrt(6 / (fan_in + fan_out)).
Uniform GlorotUniform(int64_t fan_in, int64_t fan_out);

// How a variable is cut into partitions of whole rows.
struct AutomaticPartitioner {};  // one partition below 256 KiB, else at least that
struct FixedShards {
  uint32_t shards = 1;
};
struct MinSize {
  uint64_t bytes = 256 * 1024;
};
struct MaxSize {
  uint64_t bytes = 4 * 1024 * 1024;
};
using Partitioner = std::variant<AutomaticPartitioner, FixedShards, MinSize, MaxSize>;

struct VariableSpec {
  std::string name;
  Shape shape = {};
  DType dtype = kFloat32;  // or int32, int64: those are not trainable
  Initializer initializer = Zeros{};
  std::optional<Optimizer> optimizer = std::nullopt;  // none: the coordinator's default
  float learning_rate_factor = 1.0f;                  // multiplies the optimizer's learning rate
  bool trainable = true;                              // of float32 only
  std::optional<Partitioner> partitioner = std::nullopt;  // none: the coordinator's default
  // In a synchronous round it is moved by the mean of the steps' additions, not by their sum.
  bool moving_average = false;
  // Above 0 and at most 1: a moving average, float32 and not trained. AssignAdd(v, x) moves it this
  // part of the way from its current value to x. The server does so, so it converges however late
  // updates are, and never leaves the range of its initial value and what it is given. In a
  // synchronous round it moves once, to the mean of the steps' x. ScatterAdd is refused.
  float moving_part = 0.0f;

  // Without id, seed and placement. INVALID_ARGUMENT naming the variable and the field.
  absl::StatusOr<pb::VariableProto> ToProto() const;
};

struct EmbeddingTableSpec {
  std::string name;
  int64_t rows = 0;  // ids are 0 .. rows-1
  int64_t dim = 0;
  Initializer initializer = Zeros{};
  std::optional<Optimizer> optimizer = std::nullopt;  // none: the coordinator's default
  float learning_rate_factor = 1.0f;                  // multiplies the optimizer's learning rate
  bool trainable = true;
  uint32_t partitions = 0;  // 0: the coordinator's choice

  // Without id, seed and placement. INVALID_ARGUMENT naming the table and the field.
  absl::StatusOr<pb::TableProto> ToProto() const;
};

absl::StatusOr<pb::InitializerProto> ToProto(const Initializer& initializer);

}  // namespace mu
