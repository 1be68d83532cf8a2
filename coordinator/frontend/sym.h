// Sym: a handle to a value of the graph that is being traced. (mu::Tensor is an array of
// numbers. Programs write `auto` or mu::Sym.)
//
// Errors stick: an op on a Sym with an error gives a Sym with that error, and defining the function
// reports the first one, with the op's file:line. Operators +, -, *, / and comparison with >
// broadcast as numpy does; numbers convert to constants of the other side's type, variables to
// their values. Copies are cheap. One thread at a time.
#pragma once

#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <variant>

#include "absl/status/status.h"
#include "coordinator/frontend/handles.h"
#include "coordinator/frontend/trace_graph.h"

namespace mu {

class Sym {
 public:
  Sym() = default;  // of nothing: an error where it is used

  bool valid() const { return graph_ != nullptr && status_.ok(); }
  const absl::Status& status() const { return status_; }
  DType dtype() const { return spec_.dtype; }
  const Shape& shape() const { return spec_.shape; }  // -1 where a size is not known until run time
  const TensorSpec& spec() const { return spec_; }

  // For autodiff and passes.
  TraceGraph* graph() const { return graph_.get(); }
  const pb::NodeInput& reference() const { return reference_; }

 private:
  friend class TraceGraph;
  std::shared_ptr<TraceGraph> graph_;
  pb::NodeInput reference_;
  TensorSpec spec_;
  absl::Status status_;
};

// An argument of an op: a Sym, a variable or a number, and the line where it was written.
class Operand {
 public:
  // NOLINTBEGIN(google-explicit-constructor): that it converts is what it is for
  Operand(Sym sym, const char* file = __builtin_FILE(), int line = __builtin_LINE())
      : sym_(std::move(sym)), place_{file, line} {}
  Operand(const Variable& variable, const char* file = __builtin_FILE(),
          int line = __builtin_LINE())
      : variable_(variable), is_variable_(true), place_{file, line} {}
  template <typename Number, std::enable_if_t<std::is_arithmetic_v<Number>, int> = 0>
  Operand(Number number, const char* file = __builtin_FILE(), int line = __builtin_LINE())
      : number_(MakeNumber(number)), place_{file, line} {}
  // NOLINTEND(google-explicit-constructor)

  SourcePlace place() const { return place_; }
  bool is_number() const { return number_.has_value(); }
  // The value in the current graph; a number becomes a scalar of type `like`.
  Sym Bind(DType like = kFloat32) const;

 private:
  using AnyNumber = std::variant<double, int64_t>;
  template <typename Number>
  static AnyNumber MakeNumber(Number number) {
    if constexpr (std::is_integral_v<Number>) {
      if constexpr (std::is_signed_v<Number> || sizeof(Number) < sizeof(int64_t)) {
        return static_cast<int64_t>(number);
      } else if (number <= static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
        return static_cast<int64_t>(number);
      }
    }
    return static_cast<double>(number);
  }

  Sym sym_;
  Variable variable_;
  bool is_variable_ = false;
  std::optional<AnyNumber> number_;
  SourcePlace place_;
};

}  // namespace mu
