// Makes lowered graphs node by node, for tests of what reads graphs.
#pragma once

#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "common/tensor/tensor.h"
#include "proto/graph.pb.h"

namespace mu::testing {

inline muster::AttrValue IntAttr(int64_t value) {
  muster::AttrValue attr;
  attr.set_i(value);
  return attr;
}
inline muster::AttrValue FloatAttr(float value) {
  muster::AttrValue attr;
  attr.set_f(value);
  return attr;
}
inline muster::AttrValue BoolAttr(bool value) {
  muster::AttrValue attr;
  attr.set_b(value);
  return attr;
}
inline muster::AttrValue StringAttr(std::string value) {
  muster::AttrValue attr;
  attr.set_s(std::move(value));
  return attr;
}
inline muster::AttrValue IntsAttr(const std::vector<int64_t>& values) {
  muster::AttrValue attr;
  attr.mutable_ints();
  for (const int64_t value : values) attr.mutable_ints()->add_value(value);
  return attr;
}
inline muster::AttrValue TypeAttr(DType dtype) {
  muster::AttrValue attr;
  attr.set_dtype(dtype);
  return attr;
}
inline muster::AttrValue ShapeAttr(const Shape& shape) {
  muster::AttrValue attr;
  *attr.mutable_shape() = shape.ToProto();
  return attr;
}
inline muster::AttrValue TensorAttr(const Tensor& tensor) {
  muster::AttrValue attr;
  *attr.mutable_tensor() = tensor.ToProto();
  return attr;
}

// Each call appends a node and returns a reference to its output 0. Locations are test.cc:1,
// test.cc:2, ...
class GraphMaker {
 public:
  struct Ref {
    int node = 0;
    int output = 0;
    Ref Output(int i) const { return {node, i}; }
  };
  using Attrs = std::vector<std::pair<std::string, muster::AttrValue>>;

  GraphMaker() {
    function_.set_name("test");
    function_.set_dataset(1);
  }

  Ref Op(const std::string& op, const std::vector<Ref>& inputs = {}, const Attrs& attrs = {}) {
    muster::NodeProto* const node = function_.add_nodes();
    node->set_op(op);
    for (const Ref& input : inputs) {
      muster::NodeInput* const proto = node->add_inputs();
      proto->set_node(input.node);
      proto->set_output(input.output);
    }
    for (const auto& [name, value] : attrs) (*node->mutable_attrs())[name] = value;
    node->mutable_location()->set_file("test.cc");
    node->mutable_location()->set_line(function_.nodes_size());
    return {function_.nodes_size() - 1, 0};
  }

  Ref Constant(const Tensor& value) { return Op("constant", {}, {{"value", TensorAttr(value)}}); }
  Ref Column(const std::string& name, DType dtype, const Shape& shape) {
    return Op(
        "batch_column", {},
        {{"column", StringAttr(name)}, {"dtype", TypeAttr(dtype)}, {"shape", ShapeAttr(shape)}});
  }
  Ref Arg(const std::string& name, DType dtype) {
    muster::ArgProto* const arg = function_.add_args();
    arg->set_name(name);
    arg->set_dtype(dtype);
    return Op("arg", {},
              {{"index", IntAttr(function_.args_size() - 1)}, {"dtype", TypeAttr(dtype)}});
  }
  Ref Read(const std::string& name, uint32_t id, DType dtype, const Shape& shape) {
    return Op("variable_read", {}, VariableAttrs(name, id, dtype, shape));
  }
  Ref Update(const std::string& op, const std::string& name, uint32_t id, DType dtype,
             const Shape& shape, Ref value) {
    return Op(op, {value}, VariableAttrs(name, id, dtype, shape));
  }
  Ref PullRows(const std::string& table, uint32_t id, int64_t rows, int64_t dim, Ref ids) {
    return Op("pull_rows", {ids}, TableAttrs(table, id, rows, dim));
  }
  Ref PushRows(const std::string& table, uint32_t id, int64_t rows, int64_t dim, Ref ids,
               Ref gradients) {
    return Op("push_rows", {ids, gradients}, TableAttrs(table, id, rows, dim));
  }
  void Return(const std::string& name, Ref value) {
    muster::ReturnProto* const proto = function_.add_returns();
    proto->set_name(name);
    proto->mutable_value()->set_node(value.node);
    proto->mutable_value()->set_output(value.output);
  }

  muster::FunctionProto& function() { return function_; }

 private:
  static Attrs VariableAttrs(const std::string& name, uint32_t id, DType dtype,
                             const Shape& shape) {
    return {{"variable", StringAttr(name)},
            {"id", IntAttr(id)},
            {"dtype", TypeAttr(dtype)},
            {"shape", ShapeAttr(shape)}};
  }
  static Attrs TableAttrs(const std::string& table, uint32_t id, int64_t rows, int64_t dim) {
    return {{"table", StringAttr(table)},
            {"id", IntAttr(id)},
            {"rows", IntAttr(rows)},
            {"dim", IntAttr(dim)}};
  }

  muster::FunctionProto function_;
};

}  // namespace mu::testing
