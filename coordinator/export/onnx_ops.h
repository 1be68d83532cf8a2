// How each op is said in ONNX (opset 17), or why it has no form there. Every op of the op table has
// a rule: a test holds it.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/graph/op_def.h"
#include "coordinator/export/onnx_graph.h"
#include "proto/graph.pb.h"

namespace mu {

inline constexpr int64_t kOnnxOpset = 17;
inline constexpr int64_t kOnnxIrVersion = 8;

// A node of a traced function that is to be added to the ONNX graph.
struct OnnxOp {
  const muster::NodeProto& node;
  AttrReader attrs;
  std::vector<TensorSpec> in;
  std::vector<TensorSpec> out;
  std::vector<std::string> inputs;  // values of the ONNX graph, parallel to `in`
  OnnxGraph& graph;
  // Of the checkpoint. NOT_FOUND if it has none of that name, INVALID_ARGUMENT for another shape.
  std::function<absl::StatusOr<StoredValue>(const std::string& name, const TensorSpec& spec)>
      stored;
};

// The values of the op's outputs.
using OnnxOutputs = absl::StatusOr<std::vector<std::string>>;
using EmitOnnx = std::function<OnnxOutputs(OnnxOp& op)>;

struct OnnxRule {
  EmitOnnx emit;
  std::string reason;  // without `emit`: why ONNX has no form of the op
};

class OnnxRules {
 public:
  // An op that is there already is a bug of ours (it aborts).
  void Add(const std::string& op, EmitOnnx emit);
  // The op becomes one node with the same inputs and no attributes.
  void AddSame(const std::string& op, const std::string& onnx);
  void AddNone(const std::string& op, const std::string& reason);
  // Null if nobody has said how the op is to be written.
  const OnnxRule* Find(const std::string& op) const;
  const std::map<std::string, OnnxRule>& all() const { return rules_; }

 private:
  std::map<std::string, OnnxRule> rules_;
};

const OnnxRules& AllOnnxRules();

// Why what gradients are made of has no form.
inline constexpr char kOfGradients[] = "it is part of gradients, which a prediction has none of";

// Parts of AllOnnxRules, each in a file of its own.
void AddOnnxElementwiseRules(OnnxRules* rules);
void AddOnnxMathRules(OnnxRules* rules);
void AddOnnxNeuralRules(OnnxRules* rules);
void AddOnnxArrayRules(OnnxRules* rules);
void AddOnnxParameterRules(OnnxRules* rules);

}  // namespace mu
