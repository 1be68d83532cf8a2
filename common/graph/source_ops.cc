#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/graph/register_ops.h"
#include "common/graph/shape_util.h"
#include "common/tensor/tensor.h"

namespace mu {
namespace {

using Inputs = absl::Span<const TensorSpec>;

SpecsOr InferConstant(Inputs, const AttrReader& attrs) {
  const auto value = Tensor::FromProto(attrs.TensorValue("value"));
  MU_RETURN_IF_ERROR(value.status());
  if (value->dtype() == kBool) {
    for (const char byte : attrs.TensorValue("value").data()) {
      if (byte != 0 && byte != 1) return absl::InvalidArgumentError("a bool is neither 0 nor 1");
    }
  }
  return std::vector<TensorSpec>{{value->dtype(), value->shape()}};
}

SpecsOr InferArg(Inputs, const AttrReader& attrs) {
  if (attrs.Int("index") < 0) return absl::InvalidArgumentError("attribute \"index\" is negative");
  return std::vector<TensorSpec>{{attrs.Type("dtype"), Shape()}};
}

SpecsOr InferBatchColumn(Inputs, const AttrReader& attrs) {
  if (attrs.String("column").empty())
    return absl::InvalidArgumentError("attribute \"column\" is empty");
  const Shape shape = attrs.GetShape("shape");
  if (shape.rank() == 0)
    return absl::InvalidArgumentError("a column of a batch has at least one axis");
  return std::vector<TensorSpec>{{attrs.Type("dtype"), shape}};
}

SpecsOr InferVariableRead(Inputs, const AttrReader& attrs) {
  const Shape shape = attrs.GetShape("shape");
  if (!shape.IsFullyKnown()) {
    return absl::InvalidArgumentError(absl::StrCat("variable \"", attrs.String("variable"),
                                                   "\" has an unknown size: ", shape.ToString()));
  }
  return std::vector<TensorSpec>{{attrs.Type("dtype"), shape}};
}

OpDef Source(std::string name, OpSource source, std::vector<AttrDef> attrs, InferFunction infer) {
  OpDef def = MakeOp(std::move(name), 0, 0, std::move(infer), std::move(attrs));
  def.source = source;
  return def;
}

}  // namespace

void RegisterSourceOps(OpTable& table) {
  table.BeginSection("Sources",
                     "They have no inputs: their values come from outside of the graph.");
  table.Add(Source("constant", OpSource::kConstant, {Required("value", AttrKind::kTensor)},
                   InferConstant),
            "() -> value's type and shape", "The value.");
  table.Add(
      Source("arg", OpSource::kArgument,
             {Required("index", AttrKind::kInt), Required("dtype", AttrKind::kDType)}, InferArg),
      "() -> dtype[]", "The argument of that number (`FunctionProto.args`) of the call.");
  table.Add(Source("worker_index", OpSource::kWorkerIndex, {},
                   [](Inputs, const AttrReader&) -> SpecsOr {
                     return std::vector<TensorSpec>{{kInt64, Shape()}};
                   }),
            "() -> int64[]", "The index of the worker that runs the step.");
  table.Add(Source("batch_column", OpSource::kColumn,
                   {Required("column", AttrKind::kString), Required("dtype", AttrKind::kDType),
                    Required("shape", AttrKind::kShape)},
                   InferBatchColumn),
            "() -> dtype[shape]", "A column of the step's batch; its first size is not known.");
  OpDef read = Source("variable_read", OpSource::kParameter,
                      {Required("variable", AttrKind::kString), Required("id", AttrKind::kInt),
                       Required("dtype", AttrKind::kDType), Required("shape", AttrKind::kShape)},
                      InferVariableRead);
  read.parameter = OpParameter::kVariable;
  table.Add(std::move(read), "() -> dtype[shape]",
            "The variable as it was at the beginning of the step.");
}

}  // namespace mu
