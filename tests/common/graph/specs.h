// Short forms for types, shapes and attributes in the tests of the graph.
#pragma once

#include <initializer_list>
#include <string>
#include <utility>

#include "common/base/status.h"
#include "common/graph/op_def.h"
#include "common/tensor/tensor.h"

namespace mu {

inline TensorSpec F32(std::initializer_list<int64_t> dims) { return {kFloat32, Shape(dims)}; }
inline TensorSpec I32(std::initializer_list<int64_t> dims) { return {kInt32, Shape(dims)}; }
inline TensorSpec I64(std::initializer_list<int64_t> dims) { return {kInt64, Shape(dims)}; }
inline TensorSpec U8(std::initializer_list<int64_t> dims) { return {kUInt8, Shape(dims)}; }
inline TensorSpec Bool(std::initializer_list<int64_t> dims) { return {kBool, Shape(dims)}; }

using NamedAttr = std::pair<std::string, pb::AttrValue>;

inline NamedAttr Int(const std::string& name, int64_t value) {
  NamedAttr attr{name, {}};
  attr.second.set_i(value);
  return attr;
}
inline NamedAttr Real(const std::string& name, float value) {
  NamedAttr attr{name, {}};
  attr.second.set_f(value);
  return attr;
}
inline NamedAttr Flag(const std::string& name, bool value) {
  NamedAttr attr{name, {}};
  attr.second.set_b(value);
  return attr;
}
inline NamedAttr Text(const std::string& name, const std::string& value) {
  NamedAttr attr{name, {}};
  attr.second.set_s(value);
  return attr;
}
inline NamedAttr Ints(const std::string& name, std::initializer_list<int64_t> values) {
  NamedAttr attr{name, {}};
  for (const int64_t value : values) attr.second.mutable_ints()->add_value(value);
  if (values.size() == 0) attr.second.mutable_ints();
  return attr;
}
inline NamedAttr Type(DType dtype) {
  NamedAttr attr{"dtype", {}};
  attr.second.set_dtype(dtype);
  return attr;
}
inline NamedAttr Dims(std::initializer_list<int64_t> dims) {
  NamedAttr attr{"shape", {}};
  *attr.second.mutable_shape() = Shape(dims).ToProto();
  return attr;
}
inline NamedAttr Value(const Tensor& tensor) {
  NamedAttr attr{"value", {}};
  *attr.second.mutable_tensor() = tensor.ToProto();
  return attr;
}

inline AttrMap MakeAttrs(std::initializer_list<NamedAttr> attrs) {
  AttrMap map;
  for (const NamedAttr& attr : attrs) map[attr.first] = attr.second;
  return map;
}

// Adds a node; inputs are (node, output).
inline int AddNode(pb::FunctionProto& function, const std::string& op,
                   std::initializer_list<std::pair<int, int>> inputs,
                   std::initializer_list<NamedAttr> attrs = {}, int line = 0) {
  pb::NodeProto* node = function.add_nodes();
  node->set_op(op);
  for (const auto& [from, output] : inputs) {
    pb::NodeInput* input = node->add_inputs();
    input->set_node(from);
    input->set_output(output);
  }
  *node->mutable_attrs() = MakeAttrs(attrs);
  if (line > 0) {
    node->mutable_location()->set_file("model.cc");
    node->mutable_location()->set_line(line);
  }
  return function.nodes_size() - 1;
}

inline void AddReturn(pb::FunctionProto& function, const std::string& name, int node,
                      int output = 0) {
  pb::ReturnProto* value = function.add_returns();
  value->set_name(name);
  value->mutable_value()->set_node(node);
  value->mutable_value()->set_output(output);
}

}  // namespace mu
