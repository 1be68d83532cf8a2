// Builds a new graph from an old one, node by node. For passes.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "common/base/status.h"
#include "common/graph/op_def.h"
#include "proto/graph.pb.h"

namespace mu {

class Rewriter {
 public:
  // Takes over name, arguments and dataset. `old` must outlive this.
  explicit Rewriter(const pb::FunctionProto& old);

  // Adds a node whose inputs are of the new graph; returns its output 0.
  pb::NodeInput Emit(const std::string& op, const std::vector<pb::NodeInput>& inputs, AttrMap attrs,
                     const pb::SourceLocation& location);
  // Copies a node of the old graph, all of whose inputs are there already.
  void Copy(int node);
  // Uses of the old node's output 0 become uses of `value`.
  void Replace(int node, const pb::NodeInput& value);
  bool IsDone(int node) const { return new_nodes_[node] >= 0 || replaced_.count(node) > 0; }
  // Where an old value is in the new graph; its node must be done.
  pb::NodeInput Map(const pb::NodeInput& old) const;
  // The new graph, with the old returns.
  pb::FunctionProto Finish();

 private:
  const pb::FunctionProto& old_;
  pb::FunctionProto new_;
  std::vector<int> new_nodes_;  // of each old node that was copied; else -1
  std::map<int, pb::NodeInput> replaced_;
};

inline pb::NodeInput OutputOf(const pb::NodeInput& node, int output) {
  pb::NodeInput input = node;
  input.set_output(output);
  return input;
}

}  // namespace mu
