#include "coordinator/passes/rewriter.h"

#include "common/base/check.h"

namespace mu {

// What a function says beside its nodes stays, also what is added to the message later.
Rewriter::Rewriter(const pb::FunctionProto& old)
    : old_(old), new_(old), new_nodes_(old.nodes_size(), -1) {
  new_.clear_nodes();
  new_.clear_returns();
}

pb::NodeInput Rewriter::Emit(const std::string& op, const std::vector<pb::NodeInput>& inputs,
                             AttrMap attrs, const pb::SourceLocation& location) {
  pb::NodeProto* node = new_.add_nodes();
  node->set_op(op);
  for (const pb::NodeInput& input : inputs) *node->add_inputs() = input;
  *node->mutable_attrs() = std::move(attrs);
  *node->mutable_location() = location;
  pb::NodeInput output;
  output.set_node(new_.nodes_size() - 1);
  return output;
}

void Rewriter::Copy(int node) {
  pb::NodeProto* copy = new_.add_nodes();
  *copy = old_.nodes(node);
  for (pb::NodeInput& input : *copy->mutable_inputs()) input = Map(input);
  new_nodes_[node] = new_.nodes_size() - 1;
}

void Rewriter::Replace(int node, const pb::NodeInput& value) { replaced_[node] = value; }

pb::NodeInput Rewriter::Map(const pb::NodeInput& old) const {
  const auto replaced = replaced_.find(old.node());
  if (replaced != replaced_.end()) {
    return old.output() == 0 ? replaced->second : OutputOf(replaced->second, old.output());
  }
  MU_CHECK(new_nodes_[old.node()] >= 0);
  pb::NodeInput mapped = old;
  mapped.set_node(new_nodes_[old.node()]);
  return mapped;
}

pb::FunctionProto Rewriter::Finish() {
  for (const pb::ReturnProto& value : old_.returns()) {
    pb::ReturnProto* mapped = new_.add_returns();
    mapped->set_name(value.name());
    *mapped->mutable_value() = Map(value.value());
  }
  return std::move(new_);
}

}  // namespace mu
