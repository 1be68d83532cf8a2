// The one table of ops: what exists, and for each op its arity, attributes, types and shapes, and
// what it computes (docs/reference/ops.md is made from it).
//
// The front end, autodiff, passes, verifier and kernels all go by it. Immutable once built; safe
// from all threads.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "common/graph/op_def.h"

namespace mu {

class OpTable {
 public:
  struct Section {
    std::string title;
    std::string intro;
    std::vector<std::string> ops;  // in the order of Add
  };

  // What is added from here on belongs to this section of the reference.
  void BeginSection(std::string title, std::string intro);
  // `signature` and `doc`: see OpDef. An op that is there already is a bug of ours (it aborts).
  void Add(OpDef def, std::string signature, std::string doc);

  // Null if there is no such op.
  const OpDef* Find(absl::string_view name) const;

  // INVALID_ARGUMENT: no such op, with the nearest name.
  absl::StatusOr<const OpDef*> Get(absl::string_view name) const;

  std::vector<const OpDef*> All() const;  // sorted by name
  const std::vector<Section>& sections() const { return sections_; }

 private:
  std::map<std::string, OpDef, std::less<>> ops_;
  std::vector<Section> sections_;
};

// All ops of Muster.
const OpTable& AllOps();

// The op of a node whose op is known to be in the table (of a graph that was verified, or traced).
const OpDef& DefOf(const muster::NodeProto& node);

}  // namespace mu
