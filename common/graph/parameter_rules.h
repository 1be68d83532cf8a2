// What the nodes of a function must agree on about variables, tables and columns. Used by the
// verifier.
#pragma once

#include <map>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "common/graph/op_def.h"
#include "common/graph/verifier.h"
#include "proto/graph.pb.h"

namespace mu {

class ParameterRules {
 public:
  explicit ParameterRules(GraphStage stage) : stage_(stage) {}

  // The nodes of one function, in order, each after it passed its shape function. INVALID_ARGUMENT,
  // without the place.
  absl::Status Check(const muster::FunctionProto& function, const muster::NodeProto& node);

 private:
  // What was said of `key` before, if anything, must be what is said now.
  absl::Status Agree(const std::string& key, const std::string& said);
  absl::Status CheckLowered(const muster::FunctionProto& function, const OpDef& def,
                            const muster::NodeProto& node);

  const GraphStage stage_;
  std::map<std::string, std::string> said_;
  std::set<std::string> once_;  // "op id" of those that may be there once
};

}  // namespace mu
