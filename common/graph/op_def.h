// What the table of ops says about one op: name, arity, attributes, types and shapes, what it is to
// a step, and what it computes.
#pragma once

#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/tensor/dtype.h"
#include "common/tensor/shape.h"
#include "proto/graph.pb.h"

namespace mu {

using AttrMap = google::protobuf::Map<std::string, muster::AttrValue>;

// Type and shape of a value; a size of -1 is not known until run time. The rank always is.
struct TensorSpec {
  DType dtype = muster::DTYPE_INVALID;
  Shape shape;

  std::string ToString() const;  // "float32[?, 16]"
  friend bool operator==(const TensorSpec& a, const TensorSpec& b) {
    return a.dtype == b.dtype && a.shape == b.shape;
  }
};

enum class AttrKind { kInt, kFloat, kBool, kString, kInts, kDType, kShape, kTensor };

// "int", "float", "bool", "string", "ints", "dtype", "shape", "tensor".
const char* AttrKindName(AttrKind kind);

// The kind of the value that is set. False if none is.
bool KindOfAttr(const muster::AttrValue& value, AttrKind* kind);

struct AttrDef {
  std::string name;
  AttrKind kind;
  bool required = true;
  muster::AttrValue default_value;  // used where the attribute is absent and not required
};

// The attributes of one node, checked against its OpDef before a shape function sees them: a getter
// of a name that the OpDef does not list, or of another kind, is a bug of ours (it aborts).
class AttrReader {
 public:
  AttrReader(absl::Span<const AttrDef> defs, const AttrMap& attrs) : defs_(defs), attrs_(attrs) {}

  int64_t Int(absl::string_view name) const { return Find(name).i(); }
  float Float(absl::string_view name) const { return Find(name).f(); }
  bool Bool(absl::string_view name) const { return Find(name).b(); }
  const std::string& String(absl::string_view name) const { return Find(name).s(); }
  absl::Span<const int64_t> Ints(absl::string_view name) const {
    const auto& ints = Find(name).ints().value();
    return absl::MakeConstSpan(ints.data(), ints.size());
  }
  DType Type(absl::string_view name) const { return Find(name).dtype(); }
  Shape GetShape(absl::string_view name) const { return Shape(Find(name).shape()); }
  const muster::TensorProto& TensorValue(absl::string_view name) const {
    return Find(name).tensor();
  }

 private:
  const muster::AttrValue& Find(absl::string_view name) const;

  absl::Span<const AttrDef> defs_;
  const AttrMap& attrs_;
};

using SpecsOr = absl::StatusOr<std::vector<TensorSpec>>;
using InferFunction =
    std::function<SpecsOr(absl::Span<const TensorSpec> inputs, const AttrReader& attrs)>;

// Where the value of an op comes from, if it is not computed from the op's inputs.
enum class OpSource {
  kNone,
  kConstant,
  kArgument,     // of the call
  kWorkerIndex,  // of the worker that runs the step
  kColumn,       // of the step's batch
  kParameter,    // pulled from the servers: a variable or rows of a table
  kSlices,       // of what its inputs are in each slice of the step's batch
                 // (FunctionProto.micro_batches)
};

// What an op does, at the end of the step, to the parameter that it names.
enum class OpEffect {
  kNone,
  kGradient,  // the parameter's optimizer applies it
  kAdd,
  kAssign,
};

// What an op's attribute "id" names.
enum class OpParameter { kNone, kVariable, kTable };

struct OpDef {
  static constexpr int kAnyNumber = std::numeric_limits<int>::max();

  std::string name;
  int min_inputs = 0;
  int max_inputs = 0;  // kAnyNumber: no bound
  int outputs = 1;     // -1: depends on the inputs (unique)
  std::vector<AttrDef> attrs;
  OpSource source = OpSource::kNone;
  OpEffect effect = OpEffect::kNone;  // an op with an effect has no outputs
  OpParameter parameter = OpParameter::kNone;
  bool internal = false;     // made by coordinator/passes only; never traced
  bool traced_only = false;  // replaced by coordinator/passes; has no kernel
  bool random = false;       // depends on the step too: a kernel that reads KernelContext::step()
  std::string section;       // of the reference
  std::string signature;     // inputs and result: "(a, b: float32) -> float32, broadcast"
  std::string doc;           // what it computes: sentences
  InferFunction infer;       // called after arity and attributes were checked

  // Checks number of inputs and attributes, then infers. INVALID_ARGUMENT with a sentence that does
  // not name the node.
  SpecsOr Infer(absl::Span<const TensorSpec> inputs, const AttrMap& attributes) const;
  // Only the attributes: unknown, missing, of another kind.
  absl::Status CheckAttrs(const AttrMap& attributes) const;
  AttrReader Read(const AttrMap& attributes) const { return AttrReader(attrs, attributes); }

  bool has_effect() const { return effect != OpEffect::kNone; }
  bool reads_parameter() const { return source == OpSource::kParameter; }
  // Whether a kernel computes it; otherwise the executor does itself what the op says.
  bool has_kernel() const { return !traced_only && source == OpSource::kNone && !has_effect(); }
};

}  // namespace mu
