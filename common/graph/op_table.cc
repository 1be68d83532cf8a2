#include "common/graph/op_table.h"

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/graph/nearest_name.h"
#include "common/graph/register_ops.h"

namespace mu {

void OpTable::BeginSection(std::string title, std::string intro) {
  sections_.push_back({std::move(title), std::move(intro), {}});
}

void OpTable::Add(OpDef def, std::string signature, std::string doc) {
  MU_CHECK(!sections_.empty() && "an op belongs to no section of the reference");
  std::string name = def.name;
  sections_.back().ops.push_back(name);
  def.section = sections_.back().title;
  def.signature = std::move(signature);
  def.doc = std::move(doc);
  const bool added = ops_.emplace(std::move(name), std::move(def)).second;
  MU_CHECK(added && "an op is in the table twice");
}

const OpDef* OpTable::Find(absl::string_view name) const {
  const auto found = ops_.find(std::string_view(name.data(), name.size()));
  return found == ops_.end() ? nullptr : &found->second;
}

absl::StatusOr<const OpDef*> OpTable::Get(absl::string_view name) const {
  if (const OpDef* def = Find(name)) return def;
  std::vector<std::string> names;
  for (const auto& [known, def] : ops_) names.push_back(known);
  return absl::InvalidArgumentError(
      absl::StrCat("there is no op \"", name, "\"", DidYouMean(name, names)));
}

std::vector<const OpDef*> OpTable::All() const {
  std::vector<const OpDef*> all;
  for (const auto& [name, def] : ops_) all.push_back(&def);
  return all;
}

const OpDef& DefOf(const muster::NodeProto& node) {
  const OpDef* const def = AllOps().Find(node.op());
  MU_CHECK(def != nullptr && "a node of a verified graph has an op that is not in the table");
  return *def;
}

const OpTable& AllOps() {
  static const OpTable* const table = [] {
    auto* made = new OpTable;
    RegisterSourceOps(*made);
    RegisterElementwiseOps(*made);
    RegisterComparisonOps(*made);
    RegisterIntegerOps(*made);
    RegisterMathOps(*made);
    RegisterReductionOps(*made);
    RegisterArrayOps(*made);
    RegisterLayoutOps(*made);
    RegisterSequenceOps(*made);
    RegisterNeuralOps(*made);
    RegisterImageOps(*made);
    RegisterRandomOps(*made);
    RegisterGradientOps(*made);
    RegisterParameterOps(*made);
    RegisterAccumulationOps(*made);
    return made;
  }();
  return *table;
}

}  // namespace mu
