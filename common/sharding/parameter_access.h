// How a step reaches its variables and tables: one pull before it computes, one push after.
//
// The executor calls it, the client of the parameter servers implements it
// (common/client/ps_client.h), and tests implement it in memory. `variable` and `table` are the ids
// of VariableProto and TableProto.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"

namespace mu {

struct VariableRead {
  uint32_t variable;
  void* out;  // the whole variable, row major
};

struct RowsRead {
  uint32_t table;
  absl::Span<const int64_t> ids;  // each once
  float* out;                     // [ids.size(), dim]
};

struct VariableWrite {
  uint32_t variable;
  enum Kind { kGradient, kAssignAdd } kind;
  const void* value;  // the whole variable's shape and type
};

struct RowsWrite {
  uint32_t table;
  absl::Span<const int64_t> ids;  // each once
  const float* gradients;         // [ids.size(), dim]
};

class ParameterAccess {
 public:
  virtual ~ParameterAccess() = default;
  // Fills every `out`. OUT_OF_RANGE for an id that its table does not have (names table and id).
  virtual absl::Status Pull(absl::Span<const VariableRead> variables,
                            absl::Span<const RowsRead> rows) = 0;
  // Returns when every server has applied it, or had applied it before.
  virtual absl::Status Push(absl::Span<const VariableWrite> variables,
                            absl::Span<const RowsWrite> rows) = 0;
};

}  // namespace mu
