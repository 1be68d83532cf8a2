#include "coordinator/training/parameter_rules.h"

#include <fnmatch.h>

#include <algorithm>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status.h"

namespace mu {
namespace {

Partitioner PartitionerOf(const pb::PartitionerProto& proto) {
  switch (proto.kind_case()) {
    case pb::PartitionerProto::kFixedShards:
      return FixedShards{proto.fixed_shards()};
    case pb::PartitionerProto::kMinSize:
      return MinSize{proto.min_size()};
    case pb::PartitionerProto::kMaxSize:
      return MaxSize{proto.max_size()};
    case pb::PartitionerProto::KIND_NOT_SET:
      break;
  }
  return AutomaticPartitioner{};
}

}  // namespace

template <typename Spec>
void RuledFactory::Apply(bool takes_optimizer, Spec* spec) {
  names_.insert(spec->name);
  float factor = 1;
  bool trainable = true;
  int trainable_by = -1;
  for (int i = 0; i < job_.parameters_size(); ++i) {
    const pb::ParameterRuleProto& rule = job_.parameters(i);
    if (fnmatch(rule.match().c_str(), spec->name.c_str(), 0) != 0) continue;
    used_[static_cast<size_t>(i)] = true;
    if (rule.has_optimizer() && takes_optimizer) spec->optimizer = Optimizer(rule.optimizer());
    if (rule.has_learning_rate_factor()) factor = rule.learning_rate_factor();
    if (rule.has_trainable()) {
      trainable = rule.trainable();
      trainable_by = i;
    }
    if constexpr (std::is_same_v<Spec, VariableSpec>) {
      if (!rule.has_partitioner()) continue;
      spec->partitioner = PartitionerOf(rule.partitioner());
      cuts_[static_cast<size_t>(i)] = true;
    }
  }
  if (takes_optimizer && trainable) trains_ = true;
  if (takes_optimizer && !trainable) frozen_by_ = std::max(frozen_by_, trainable_by);
  spec->learning_rate_factor *= factor;
  // What the model does not train, no rule makes it train.
  spec->trainable = spec->trainable && trainable;
}

absl::StatusOr<Variable> RuledFactory::CreateVariable(const VariableSpec& spec) {
  VariableSpec ruled = spec;
  Apply(spec.trainable && spec.dtype == kFloat32, &ruled);
  return factory_->CreateVariable(ruled);
}

absl::StatusOr<EmbeddingTable> RuledFactory::CreateEmbeddingTable(const EmbeddingTableSpec& spec) {
  EmbeddingTableSpec ruled = spec;
  Apply(spec.trainable, &ruled);
  return factory_->CreateEmbeddingTable(ruled);
}

std::vector<std::string> RuledFactory::Problems() const {
  constexpr size_t kMostNames = 20;
  std::vector<std::string> problems;
  for (size_t i = 0; i < used_.size(); ++i) {
    const pb::ParameterRuleProto& rule = job_.parameters(static_cast<int>(i));
    if (used_[i] && rule.has_partitioner() && !cuts_[i]) {
      problems.push_back(
          absl::StrCat("parameters[", i, "].partitioner: is for variables, and `", rule.match(),
                       "` is the name of tables only, which are cut by their ids; remove it"));
    }
    if (used_[i]) continue;
    std::vector<std::string> some(names_.begin(), names_.end());
    const bool more = some.size() > kMostNames;
    if (more) some.resize(kMostNames);
    problems.push_back(
        absl::StrCat("parameters[", i, "].match: `", rule.match(),
                     "` is the name of no variable or table of the model, which has ",
                     absl::StrJoin(some, ", "), more ? ", ..." : ""));
  }
  return problems;
}

std::string RuledFactory::NothingToTrain() const {
  if (trains_ || frozen_by_ < 0) return "";
  return absl::StrCat("parameters[", frozen_by_,
                      "].trainable: is false, and no variable or table of the model is left to "
                      "train; match fewer names, or let a rule below it train some");
}

absl::Status RuledFactory::Check() const {
  const std::vector<std::string> problems = Problems();
  return problems.empty() ? absl::OkStatus() : absl::InvalidArgumentError(problems[0]);
}

}  // namespace mu
