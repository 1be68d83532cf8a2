// How a step reaches its variables and tables: one pull before it computes, one push after, and
// products with variables that stay on their servers, in between.
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
  void* out;  // row major
  // Of axis 0, which rows; -1: the whole variable.
  int64_t first_row = 0;
  int64_t rows = -1;
};

// With a float32 variable w [n, k]: out [batch, n] is x [batch, k] times the transposed w. `back`:
// out [batch, k] is x [batch, n] times w.
struct ProductRead {
  uint32_t variable;
  bool back;
  int64_t batch;
  const float* x;
  float* out;
};

struct RowsRead {
  uint32_t table;
  absl::Span<const int64_t> ids;  // each once
  float* out;                     // [ids.size(), dim]
};

struct VariableWrite {
  uint32_t variable;
  enum Kind {
    kGradient,
    kAssignAdd,
    kScatterAdd,       // to some rows; what comes to one row twice is added up
    kProductGradient,  // the gradient is the transposed `value` [batch, n] times x [batch, k]
    kAssign,
    kScatterUpdate,  // some rows get new values; of one row twice, the last counts
  } kind;
  const void* value;  // the whole variable's shape and type; with `rows`: of these
  absl::Span<const int64_t> rows = {};  // of kScatterAdd, kScatterUpdate: indices on axis 0
  const float* x = nullptr;             // of kProductGradient
  int64_t batch = 0;                    // of kProductGradient

  bool has_rows() const { return kind == kScatterAdd || kind == kScatterUpdate; }
};

struct RowsWrite {
  uint32_t table;
  absl::Span<const int64_t> ids;  // each once
  const float* gradients;         // [ids.size(), dim]
};

class ParameterAccess {
 public:
  virtual ~ParameterAccess() = default;
  // Fills every `out`. OUT_OF_RANGE for an id that its table, or rows that its variable does not
  // have (names both).
  virtual absl::Status Pull(absl::Span<const VariableRead> variables,
                            absl::Span<const RowsRead> rows) = 0;
  // Fills every `out`; the servers compute. Changes nothing.
  virtual absl::Status Multiply(absl::Span<const ProductRead> products) = 0;
  // Returns when every server has applied it, or had applied it before.
  virtual absl::Status Push(absl::Span<const VariableWrite> variables,
                            absl::Span<const RowsWrite> rows) = 0;
};

}  // namespace mu
