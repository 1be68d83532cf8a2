// An ONNX graph while it is built: values have names, each made once. Not thread safe.
//
// Values of a checkpoint are named and counted here; whoever writes the model puts their bytes into
// it or beside it (onnx_file.h).
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/graph/op_def.h"
#include "common/tensor/tensor.h"
#include "coordinator/export/checkpoint_values.h"
#include "proto/onnx.pb.h"

namespace mu {

// Builds attributes: OnnxAttrs().Int("axis", 1).
class OnnxAttrs {
 public:
  OnnxAttrs& Int(const std::string& name, int64_t value);
  OnnxAttrs& Float(const std::string& name, float value);
  OnnxAttrs& Ints(const std::string& name, absl::Span<const int64_t> values);
  OnnxAttrs& String(const std::string& name, const std::string& value);
  OnnxAttrs& Value(const std::string& name, const Tensor& value);
  const std::vector<muster::onnx::AttributeProto>& protos() const { return protos_; }

 private:
  muster::onnx::AttributeProto& Add(const std::string& name,
                                    muster::onnx::AttributeProto::Type type);
  std::vector<muster::onnx::AttributeProto> protos_;
};

muster::onnx::TensorProto::DataType OnnxType(DType dtype);

class OnnxGraph {
 public:
  struct Stored {
    std::string name;  // in the graph
    StoredValue value;
  };

  explicit OnnxGraph(const std::string& name) { proto_.set_name(name); }

  // Keeps the name for an input that comes later: nothing else gets it. Inputs are called as the
  // data's columns, so their names must be reserved before anything is made.
  void ReserveInput(const std::string& name) { names_.insert(name); }
  // `name` is reserved. A size of -1 gets the name in `sizes` at its place.
  void AddInput(const std::string& name, const TensorSpec& spec,
                absl::Span<const std::string> sizes, const std::string& doc);
  void AddOutput(const std::string& name, const TensorSpec& spec,
                 absl::Span<const std::string> sizes, const std::string& value);

  // The name of the node's output, or of each of its outputs. `place` of the op that it is part of
  // goes into the node's doc_string.
  std::string Add(const std::string& op, std::vector<std::string> inputs,
                  const OnnxAttrs& attrs = {});
  std::vector<std::string> Add(const std::string& op, std::vector<std::string> inputs,
                               const OnnxAttrs& attrs, int outputs);
  void set_place(std::string place) { place_ = std::move(place); }

  // Constants. Equal lists of integers and equal scalars are one.
  std::string Constant(const Tensor& value, absl::string_view wish = "constant");
  std::string Ints(absl::Span<const int64_t> values);  // int64 [n]
  std::string Scalar(float value);
  std::string Scalar(DType dtype, int64_t value);  // integers and bool; float32 as well
  // The value of a variable or table; one for each.
  std::string Value(const StoredValue& value);

  // Frequent parts. Shape: int64 [rank].
  std::string ShapeOf(const std::string& value) { return Add("Shape", {value}); }
  std::string Cast(const std::string& value, DType dtype);
  // Axes of size 1 at these places of the result.
  std::string Unsqueeze(const std::string& value, absl::Span<const int64_t> axes) {
    return Add("Unsqueeze", {value, Ints(axes)});
  }
  // [begin, end) of axis 0 of a vector; negative numbers count from its end.
  std::string SliceVector(const std::string& vector, int64_t begin, int64_t end) {
    return Add("Slice", {vector, Ints({begin}), Ints({end}), Ints({0})});
  }
  // Of a shape, zeros or another value.
  std::string Fill(const std::string& shape, DType dtype, int64_t value);

  const muster::onnx::GraphProto& proto() const { return proto_; }
  const std::vector<Stored>& stored() const { return stored_; }

 private:
  std::string NewName(absl::string_view wish);

  muster::onnx::GraphProto proto_;
  std::string place_;
  std::set<std::string> names_;
  std::map<std::vector<int64_t>, std::string> ints_;
  std::map<std::string, std::string> scalars_;  // by type and bytes
  std::vector<Stored> stored_;
};

}  // namespace mu
