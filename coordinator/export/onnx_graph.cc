#include "coordinator/export/onnx_graph.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"

namespace mu {
namespace {

using Onnx = pb::onnx::TensorProto;

pb::onnx::TensorProto ToOnnx(const Tensor& tensor) {
  pb::onnx::TensorProto proto;
  for (const int64_t dim : tensor.shape()) proto.add_dims(dim);
  proto.set_data_type(OnnxType(tensor.dtype()));
  proto.set_raw_data(tensor.raw(), tensor.bytes());
  return proto;
}

Tensor ScalarTensor(DType dtype, int64_t value) {
  switch (dtype) {
    case kFloat32:
      return Tensor::Scalar<float>(static_cast<float>(value));
    case kInt32:
      return Tensor::Scalar<int32_t>(static_cast<int32_t>(value));
    case kUInt8:
      return Tensor::Scalar<uint8_t>(static_cast<uint8_t>(value));
    case kBool:
      return Tensor::Scalar<bool>(value != 0);
    default:
      return Tensor::Scalar<int64_t>(value);
  }
}

void SetType(const TensorSpec& spec, absl::Span<const std::string> sizes,
             pb::onnx::TypeProto* type) {
  auto* tensor = type->mutable_tensor_type();
  tensor->set_elem_type(OnnxType(spec.dtype));
  auto* shape = tensor->mutable_shape();
  for (int axis = 0; axis < spec.shape.rank(); ++axis) {
    auto* dim = shape->add_dim();
    if (spec.shape[axis] >= 0) {
      dim->set_dim_value(spec.shape[axis]);
    } else {
      dim->set_dim_param(sizes[static_cast<size_t>(axis)]);
    }
  }
}

}  // namespace

Onnx::DataType OnnxType(DType dtype) {
  switch (dtype) {
    case kFloat32:
      return Onnx::FLOAT;
    case kInt32:
      return Onnx::INT32;
    case kInt64:
      return Onnx::INT64;
    case kUInt8:
      return Onnx::UINT8;
    case kBool:
      return Onnx::BOOL;
    default:
      return Onnx::UNDEFINED;
  }
}

pb::onnx::AttributeProto& OnnxAttrs::Add(const std::string& name,
                                         pb::onnx::AttributeProto::Type type) {
  protos_.emplace_back().set_name(name);
  protos_.back().set_type(type);
  return protos_.back();
}
OnnxAttrs& OnnxAttrs::Int(const std::string& name, int64_t value) {
  Add(name, pb::onnx::AttributeProto::INT).set_i(value);
  return *this;
}
OnnxAttrs& OnnxAttrs::Float(const std::string& name, float value) {
  Add(name, pb::onnx::AttributeProto::FLOAT).set_f(value);
  return *this;
}
OnnxAttrs& OnnxAttrs::Ints(const std::string& name, absl::Span<const int64_t> values) {
  auto& proto = Add(name, pb::onnx::AttributeProto::INTS);
  for (const int64_t value : values) proto.add_ints(value);
  return *this;
}
OnnxAttrs& OnnxAttrs::String(const std::string& name, const std::string& value) {
  Add(name, pb::onnx::AttributeProto::STRING).set_s(value);
  return *this;
}
OnnxAttrs& OnnxAttrs::Value(const std::string& name, const Tensor& value) {
  *Add(name, pb::onnx::AttributeProto::TENSOR).mutable_t() = ToOnnx(value);
  return *this;
}

std::string OnnxGraph::NewName(absl::string_view wish) {
  std::string name(wish);
  for (int i = 1; !names_.insert(name).second; ++i) name = absl::StrCat(wish, "_", i);
  return name;
}

void OnnxGraph::AddInput(const std::string& name, const TensorSpec& spec,
                         absl::Span<const std::string> sizes, const std::string& doc) {
  auto* input = proto_.add_input();
  input->set_name(name);
  input->set_doc_string(doc);
  SetType(spec, sizes, input->mutable_type());
}

void OnnxGraph::AddOutput(const std::string& name, const TensorSpec& spec,
                          absl::Span<const std::string> sizes, const std::string& value) {
  auto* output = proto_.add_output();
  output->set_name(NewName(name));
  SetType(spec, sizes, output->mutable_type());
  // A value may have another name already, or be an input.
  auto* node = proto_.add_node();
  node->set_op_type("Identity");
  node->set_name(NewName(absl::StrCat("Identity/", name)));
  node->add_input(value);
  node->add_output(output->name());
}

std::vector<std::string> OnnxGraph::Add(const std::string& op, std::vector<std::string> inputs,
                                        const OnnxAttrs& attrs, int outputs) {
  auto* node = proto_.add_node();
  node->set_op_type(op);
  node->set_name(NewName(absl::StrCat(op, "/", proto_.node_size())));
  node->set_doc_string(place_);
  for (std::string& input : inputs) node->add_input(std::move(input));
  for (const auto& attr : attrs.protos()) *node->add_attribute() = attr;
  std::vector<std::string> names;
  for (int i = 0; i < outputs; ++i) {
    names.push_back(NewName(absl::StrCat(node->name(), ":", i)));
    node->add_output(names.back());
  }
  return names;
}

std::string OnnxGraph::Add(const std::string& op, std::vector<std::string> inputs,
                           const OnnxAttrs& attrs) {
  return Add(op, std::move(inputs), attrs, 1)[0];
}

std::string OnnxGraph::Constant(const Tensor& value, absl::string_view wish) {
  auto* initializer = proto_.add_initializer();
  *initializer = ToOnnx(value);
  initializer->set_name(NewName(wish));
  return initializer->name();
}

std::string OnnxGraph::Ints(absl::Span<const int64_t> values) {
  std::string& name = ints_[{values.begin(), values.end()}];
  if (name.empty())
    name = Constant(Tensor::Of<int64_t>({static_cast<int64_t>(values.size())}, values), "ints");
  return name;
}

std::string OnnxGraph::Scalar(float value) {
  const Tensor tensor = Tensor::Scalar<float>(value);
  std::string& name =
      scalars_[absl::StrCat("f", std::string(static_cast<const char*>(tensor.raw()), 4))];
  if (name.empty()) name = Constant(tensor, "scalar");
  return name;
}

std::string OnnxGraph::Scalar(DType dtype, int64_t value) {
  if (dtype == kFloat32) return Scalar(static_cast<float>(value));
  std::string& name = scalars_[absl::StrCat(std::string(DTypeName(dtype)), " ", value)];
  if (name.empty()) name = Constant(ScalarTensor(dtype, value), "scalar");
  return name;
}

std::string OnnxGraph::Value(const StoredValue& value) {
  for (const Stored& stored : stored_) {
    if (stored.value.name == value.name && stored.value.is_table == value.is_table)
      return stored.name;
  }
  stored_.push_back({NewName(value.name), value});
  return stored_.back().name;
}

std::string OnnxGraph::Cast(const std::string& value, DType dtype) {
  return Add("Cast", {value}, OnnxAttrs().Int("to", OnnxType(dtype)));
}

std::string OnnxGraph::Fill(const std::string& shape, DType dtype, int64_t value) {
  const Tensor scalar = ScalarTensor(dtype, value);
  const Tensor one(scalar.dtype(), Shape{1});
  std::copy_n(static_cast<const char*>(scalar.raw()), scalar.bytes(),
              static_cast<char*>(const_cast<void*>(one.raw())));
  return Add("ConstantOfShape", {shape}, OnnxAttrs().Value("value", one));
}

}  // namespace mu
