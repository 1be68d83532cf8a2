#include "coordinator/passes/record_degree.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <set>
#include <string>

#include "absl/strings/match.h"
#include "common/base/status.h"
#include "common/graph/op_table.h"
#include "common/graph/shape_util.h"
#include "common/graph/slice_rules.h"
#include "common/tensor/tensor.h"

namespace mu {
namespace {

using Degree = std::optional<int>;

// How an op's degree follows from those of its inputs.
enum class Rule {
  kSame,      // it adds its inputs or chooses among them, so they are of one degree
  kProduct,   // of sums over an axis of records, too: matmul
  kQuotient,  // of input 0 and input 1
  kMoves,     // the elements of input 0 elsewhere, or a multiple of each
  kSum,       // over axes
  kMean,
  kExtreme,
  kCount,
  kSumOfSquares,
  kOther,  // anything else: of inputs of degree 0 only
};

Rule RuleOf(const std::string& op) {
  static const auto* const rules = new std::map<std::string, Rule>{
      {"add", Rule::kSame},
      {"subtract", Rule::kSame},
      {"maximum", Rule::kSame},
      {"minimum", Rule::kSame},
      {"concat", Rule::kSame},
      {"where", Rule::kSame},
      {"multiply", Rule::kProduct},
      {"matmul", Rule::kProduct},
      {"batch_matmul", Rule::kProduct},
      {"divide", Rule::kQuotient},
      {"negate", Rule::kMoves},
      {"abs", Rule::kMoves},
      {"relu", Rule::kMoves},
      {"cast", Rule::kMoves},
      {"reshape", Rule::kMoves},
      {"transpose", Rule::kMoves},
      {"slice", Rule::kMoves},
      {"expand_dims", Rule::kMoves},
      {"squeeze", Rule::kMoves},
      {"tile", Rule::kMoves},
      {"stop_gradient", Rule::kMoves},
      {"reduce_sum", Rule::kSum},
      {"reduce_mean", Rule::kMean},
      {"mean_squared_error", Rule::kMean},
      {"reduce_max", Rule::kExtreme},
      {"reduce_min", Rule::kExtreme},
      {"reduce_any", Rule::kExtreme},
      {"reduce_all", Rule::kExtreme},
      {"count", Rule::kCount},
      {"sum_of_squares", Rule::kSumOfSquares},
  };
  const auto found = rules->find(op);
  return found == rules->end() ? Rule::kOther : found->second;
}

int UnknownAxes(const Shape& shape) {
  int unknown = 0;
  for (const int64_t size : shape) unknown += size == kUnknownDim ? 1 : 0;
  return unknown;
}

class NodeDegree {
 public:
  NodeDegree(const pb::NodeProto& node, const FunctionSpecs& specs,
             const std::vector<RecordDegree>& degrees)
      : node_(node), specs_(specs), degrees_(degrees) {}

  Degree Of(const std::vector<TensorSpec>& outputs) const {
    switch (const Rule rule = RuleOf(node_.op())) {
      case Rule::kSame:
        return Common(node_.op() == "where" ? 1 : 0);
      case Rule::kProduct:
        return Sum(Sum(Input(0), Input(1)), ContractedAxes());
      case Rule::kQuotient: {
        const Degree divisor = Input(1);
        return divisor.has_value() ? Sum(Input(0), -*divisor) : std::nullopt;
      }
      case Rule::kMoves:
        return LosesRecords(outputs) ? std::nullopt : Input(0);
      case Rule::kSum:
      case Rule::kCount:
        return Sum(rule == Rule::kSum ? Input(0) : 0, ReducedAxes());
      case Rule::kMean:
        return node_.inputs_size() == 1 ? Input(0) : Zero();
      case Rule::kExtreme:
        return Input(0);
      case Rule::kSumOfSquares:
        return Zero().has_value() ? Common(0, /*add_axes=*/true) : std::nullopt;
      case Rule::kOther:
        return LosesRecords(outputs) || ScansRecords() ? std::nullopt : Zero();
    }
    return std::nullopt;
  }

  // Whether what does not vary is beside what does, or is in its inputs already.
  bool HasOffset() const {
    const Rule rule = RuleOf(node_.op());
    if (rule == Rule::kQuotient) return OffsetOf(0);  // a divisor may have one, as epsilon is
    bool offset = false;
    for (int i = rule == Rule::kSame && node_.op() == "where" ? 1 : 0; i < node_.inputs_size(); ++i)
      offset = offset || OffsetOf(i) || (rule == Rule::kSame && !DegreeOf(i).varies);
    return offset;
  }
  // Whether it is homogeneous in sums over records without being additive, or is made of what is.
  bool IsNonlinear(const std::vector<TensorSpec>& outputs) const {
    return Inherits([](const RecordDegree& input) { return input.nonlinear; }) || Chooses(outputs);
  }
  // See RecordDegree::size.
  bool IsSize(const std::vector<TensorSpec>& outputs) const {
    static const auto* const factors = new std::set<std::string>{
        "multiply", "divide", "negate", "cast", "reshape", "stop_gradient"};
    const std::string& op = node_.op();
    if (op == "count") return ReducedAxes() == 0 || !DegreeOf(0).may_be_empty;
    if (!factors->contains(op) && !DefOf(node_).random) return false;
    if (op == "cast" && Truncates(outputs[0])) return false;
    for (int i = 0; i < node_.inputs_size(); ++i) {
      if (DegreeOf(i).varies && !DegreeOf(i).size) return false;
    }
    return true;
  }
  // See RecordDegree::composed.
  bool IsComposed(const std::vector<TensorSpec>& outputs) const {
    if (IsOfShapes() || AxesOfRecords(outputs) > 0) return false;
    bool of_records = false, of_list = false;
    int inputs = 0, sizes = 0;  // those that vary
    for (int i = 0; i < node_.inputs_size(); ++i) {
      const RecordDegree& input = DegreeOf(i);
      if (!input.varies) continue;
      if (input.composed) return true;
      ++inputs;
      sizes += input.size ? 1 : 0;
      of_records = of_records || UnknownAxes(ShapeOf(i)) > 0;
      of_list = of_list || input.may_be_empty;
    }
    const Rule rule = RuleOf(node_.op());
    // Slices are weighed by their records, which may have any number of a list's values.
    if (of_records) return rule == Rule::kMean && of_list;
    switch (rule) {
      case Rule::kProduct:
        return inputs - sizes > 1;
      case Rule::kQuotient:
        return DegreeOf(1).varies && !DegreeOf(1).size;
      case Rule::kMean:
        return node_.inputs_size() > 1;  // of squares
      case Rule::kSumOfSquares:
      case Rule::kOther:
        return inputs > 0;
      default:
        return Chooses(outputs);
    }
  }
  // See RecordDegree::entangled.
  bool IsEntangled(const std::vector<TensorSpec>& outputs) const {
    if (IsOfShapes()) return false;
    bool of_all = false;
    int of_records = 0, axes = 0;
    for (int i = 0; i < node_.inputs_size(); ++i) {
      const RecordDegree& input = DegreeOf(i);
      if (!input.varies) continue;
      if (input.entangled) return true;
      const int own = UnknownAxes(ShapeOf(i));
      of_records += own > 0 ? 1 : 0;
      of_all = of_all || (own == 0 && !input.size);
      axes = std::max(axes, own);
    }
    if (of_records == 0) return false;
    const bool of_pairs = of_records > 1 && AxesOfRecords(outputs) > axes;
    return of_all || of_pairs || NormalizesRecords();
  }
  std::map<int, int> PowersOfCounts() const {
    const std::string& op = node_.op();
    std::map<int, int> powers;
    if (op == "count") {
      // `degrees_` has those of the nodes before this one.
      if (DegreeOf(0).may_be_empty && ReducedAxes() > 0)
        powers[static_cast<int>(degrees_.size())] = 1;
      return powers;
    }
    const Rule rule = RuleOf(op);
    if (rule == Rule::kProduct || rule == Rule::kQuotient) {
      powers = DegreeOf(0).powers_of_counts;
      for (const auto& [count, power] : DegreeOf(1).powers_of_counts)
        powers[count] += rule == Rule::kProduct ? power : -power;
      return powers;
    }
    for (int i = 0; i < node_.inputs_size(); ++i) {
      for (const auto& [count, power] : DegreeOf(i).powers_of_counts) {
        const int own = op == "pow" ? std::abs(power) : power;  // the exponent may be negative
        const auto [found, is_new] = powers.try_emplace(count, own);
        if (!is_new) found->second = std::max(found->second, own);
      }
    }
    return powers;
  }
  // Of list columns the values of all records are in one axis; bags and padded sequences have an
  // entry for each record again.
  bool MayBeEmpty() const {
    const std::string& op = node_.op();
    const AttrReader attrs = DefOf(node_).Read(node_.attrs());
    if (op == "batch_column") {
      return absl::EndsWith(attrs.String("column"), ".values") ||
             absl::EndsWith(attrs.String("column"), ".weights");
    }
    if (op == "pad_sequences") return false;
    if (op == "embedding_lookup" && attrs.String("combiner") != "none") return false;
    for (int i = 0; i < node_.inputs_size(); ++i) {
      const RecordDegree& input = DegreeOf(i);
      if (input.varies && input.may_be_empty && UnknownAxes(ShapeOf(i)) > 0) return true;
    }
    return false;
  }
  // Whether all elements are whole numbers, whatever their type.
  bool IsWhole(const TensorSpec& output) const {
    static const auto* const always = new std::set<std::string>{
        "count", "floor", "ceil", "round", "sign", "zeros_like", "ones_like"};
    static const auto* const of_whole = new std::set<std::string>{
        "add",     "subtract",  "multiply",   "maximum",    "minimum",       "negate",
        "abs",     "relu",      "square",     "concat",     "where",         "cast",
        "reshape", "transpose", "slice",      "gather",     "stop_gradient", "expand_dims",
        "squeeze", "tile",      "reduce_sum", "reduce_max", "reduce_min"};
    const std::string& op = node_.op();
    if (output.dtype != kFloat32 || always->contains(op)) return true;
    if (op == "constant") return IsWholeConstant();
    if (!of_whole->contains(op)) return false;
    for (int i = op == "where" ? 1 : 0; i < node_.inputs_size(); ++i) {
      if (!DegreeOf(i).whole) return false;
    }
    return true;
  }
  // Whether it takes the largest or smallest over records.
  bool IsExtreme() const { return RuleOf(node_.op()) == Rule::kExtreme && ReducedAxes() > 0; }

 private:
  static Degree Sum(Degree a, Degree b) {
    return a.has_value() && b.has_value() ? Degree(*a + *b) : std::nullopt;
  }

  const RecordDegree& DegreeOf(int i) const { return degrees_[node_.inputs(i).node()]; }
  const Shape& ShapeOf(int i) const {
    return specs_[node_.inputs(i).node()][node_.inputs(i).output()].shape;
  }
  bool OffsetOf(int i) const { return DegreeOf(i).varies && DegreeOf(i).offset; }
  // From an input that varies; not from a divisor, as no offset is.
  bool Inherits(bool (*has)(const RecordDegree&)) const {
    const int inputs = RuleOf(node_.op()) == Rule::kQuotient ? 1 : node_.inputs_size();
    for (int i = 0; i < inputs; ++i) {
      if (DegreeOf(i).varies && has(DegreeOf(i))) return true;
    }
    return false;
  }
  // Whether it is no sum of what slices give although its inputs are.
  bool Chooses(const std::vector<TensorSpec>& outputs) const {
    const std::string& op = node_.op();
    if (op == "where") return DegreeOf(0).varies;  // each slice chooses for itself
    if (op == "cast") return Truncates(outputs[0]);
    return op == "maximum" || op == "minimum" || op == "abs" || op == "relu" ||
           RuleOf(op) == Rule::kExtreme;
  }
  // Whether the values of its inputs do not matter.
  bool IsOfShapes() const {
    return node_.op() == "count" || node_.op() == "zeros_like" || node_.op() == "ones_like";
  }
  static int AxesOfRecords(const std::vector<TensorSpec>& outputs) {
    int axes = 0;
    for (const TensorSpec& output : outputs) axes = std::max(axes, UnknownAxes(output.shape));
    return axes;
  }
  bool NormalizesRecords() const {
    if (node_.op() != "softmax" && node_.op() != "log_softmax") return false;
    const Shape& shape = ShapeOf(0);
    return shape[shape.rank() - 1] == kUnknownDim;
  }
  // Whether a cast loses a part of what it adds up in each slice.
  bool Truncates(const TensorSpec& output) const {
    if (output.dtype == kFloat32) return false;
    return (output.dtype != kInt32 && output.dtype != kInt64) || !DegreeOf(0).whole;
  }
  bool IsWholeConstant() const {
    const absl::StatusOr<Tensor> value =
        Tensor::FromProto(DefOf(node_).Read(node_.attrs()).TensorValue("value"));
    if (!value.ok()) return false;
    const float* const numbers = value->data<float>();
    return std::all_of(numbers, numbers + value->elements(),
                       [](float number) { return number == std::floor(number); });
  }
  // What does not vary is a factor like any number.
  Degree Input(int i) const { return DegreeOf(i).varies ? DegreeOf(i).degree : 0; }

  // Of those from `first` that vary: what does not may be added to any (as epsilon is).
  Degree Common(int first, bool add_axes = false) const {
    std::optional<Degree> common;
    for (int i = first; i < node_.inputs_size(); ++i) {
      if (!DegreeOf(i).varies) continue;
      const Degree own = Sum(DegreeOf(i).degree, add_axes ? UnknownAxes(ShapeOf(i)) : 0);
      if (common.has_value() && *common != own) return std::nullopt;
      common = own;
    }
    return common.value_or(0);
  }

  Degree Zero() const {
    for (int i = 0; i < node_.inputs_size(); ++i) {
      if (Input(i) != 0) return std::nullopt;
    }
    return 0;
  }

  // Whether an input has an entry for each record and no output does.
  bool LosesRecords(const std::vector<TensorSpec>& outputs) const {
    for (const TensorSpec& output : outputs) {
      if (UnknownAxes(output.shape) > 0) return false;
    }
    for (int i = 0; i < node_.inputs_size(); ++i) {
      if (DegreeOf(i).varies && UnknownAxes(ShapeOf(i)) > 0) return true;
    }
    return false;
  }

  // Whether it has for each record what depends on those before.
  bool ScansRecords() const {
    return node_.op() == "cumsum" &&
           ShapeOf(0)[static_cast<int>(DefOf(node_).Read(node_.attrs()).Int("axis"))] ==
               kUnknownDim;
  }

  int ReducedAxes() const {
    const Shape& shape = ShapeOf(0);
    const auto axes = ResolveAxes(DefOf(node_).Read(node_.attrs()).Ints("axes"), shape.rank());
    int unknown = 0;
    for (const int axis : axes.value_or(std::vector<int>()))
      unknown += shape[axis] == kUnknownDim ? 1 : 0;
    return unknown;
  }

  int ContractedAxes() const {
    if (node_.op() == "multiply") return 0;
    const Shape& a = ShapeOf(0);
    const bool transposed = DefOf(node_).Read(node_.attrs()).Bool("transpose_a");
    return a[a.rank() - (transposed ? 2 : 1)] == kUnknownDim ? 1 : 0;
  }

  const pb::NodeProto& node_;
  const FunctionSpecs& specs_;
  const std::vector<RecordDegree>& degrees_;
};

}  // namespace

std::vector<RecordDegree> RecordDegreesOf(const pb::FunctionProto& function,
                                          const FunctionSpecs& specs) {
  const std::vector<StepPart> parts = StepPartsOf(function);
  std::vector<RecordDegree> degrees;
  degrees.reserve(function.nodes_size());
  for (int i = 0; i < function.nodes_size(); ++i) {
    const pb::NodeProto& node = function.nodes(i);
    const NodeDegree rule(node, specs, degrees);
    RecordDegree own;
    own.varies = parts[i] != StepPart::kAny;
    own.whole = !specs[i].empty() && rule.IsWhole(specs[i][0]);
    own.may_be_empty = own.varies && rule.MayBeEmpty();
    const bool is_source = DefOf(node).source != OpSource::kNone;
    if (own.varies && !is_source) {
      own.degree = rule.Of(specs[i]);
      own.extreme = rule.IsExtreme();
      own.offset = own.degree != 0 && rule.HasOffset();
      own.nonlinear = own.degree != 0 && rule.IsNonlinear(specs[i]);
      own.size = !specs[i].empty() && rule.IsSize(specs[i]);
      own.composed = !own.size && !specs[i].empty() && rule.IsComposed(specs[i]);
      own.entangled = !specs[i].empty() && rule.IsEntangled(specs[i]);
      own.powers_of_counts = rule.PowersOfCounts();
      for (const pb::NodeInput& input : node.inputs())
        own.extreme = own.extreme || degrees[input.node()].extreme;
    }
    degrees.push_back(own);
  }
  return degrees;
}

}  // namespace mu
