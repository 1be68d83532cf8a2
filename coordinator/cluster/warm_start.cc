#include "coordinator/cluster/warm_start.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/name_pattern.h"
#include "common/graph/nearest_name.h"
#include "common/optimizer/optimizer_settings.h"
#include "coordinator/cluster/checkpoint_manifest.h"
#include "coordinator/cluster/described_parameters.h"

namespace mu {
namespace {

constexpr size_t kMostNamed = 5;

std::vector<std::string> NamesOf(const std::map<std::string, DescribedParameter>& all) {
  std::vector<std::string> names;
  for (const auto& [name, described] : all) names.push_back(name);
  return names;
}

std::string NearestRemedy(const std::string& name, const std::vector<std::string>& names) {
  const std::string nearest = NearestName(name, names);
  if (!nearest.empty()) return absl::StrCat("did you mean `", nearest, "`?");
  return absl::StrCat("it has ", absl::StrJoin(names, ", "));
}

class Planner {
 public:
  Planner(const WarmStartSpec& spec, const pb::CheckpointProto& checkpoint,
          const pb::RoutingProto& model, std::vector<WarmStartProblem>* problems)
      : spec_(spec),
        saved_(DescribeParameters(checkpoint)),
        model_(DescribeParameters(WithPartitions(model))),
        problems_(problems) {
    taken_.set_slots(spec.slots);
  }

  pb::TakenValuesProto Plan() {
    if (spec_.map.empty()) {
      for (const auto& [name, described] : model_) {
        if (saved_.contains(name)) Take(-1, name, name);
      }
      if (taken_.names().empty() && problems_->empty()) {
        Add(-1, false, "the checkpoint and the model have no name in common",
            "write a map, from its names to the model's");
      }
      return taken_;
    }
    for (size_t i = 0; i < spec_.map.size(); ++i) PlanEntry(static_cast<int>(i), spec_.map[i]);
    return taken_;
  }

 private:
  void Add(int entry, bool in_to, std::string message, std::string remedy) {
    problems_->push_back({entry, in_to, std::move(message), std::move(remedy)});
  }

  void PlanEntry(int entry, const WarmStartSpec::Rename& rename) {
    const std::string& to = rename.to.empty() ? rename.from : rename.to;
    if (rename.from.empty()) return Add(entry, false, "names nothing", "write a name or a pattern");
    for (const std::string* pattern : {&rename.from, &to}) {
      if (std::count(pattern->begin(), pattern->end(), '*') > 1)
        return Add(entry, pattern == &to, "has more than one `*`", "write several entries");
    }
    if (absl::StrContains(to, '*') && !absl::StrContains(rename.from, '*'))
      return Add(entry, true, "has a `*`, which `from` has not", "write both with it");
    bool matched = false;
    for (const auto& [name, described] : saved_) {
      const std::optional<std::string> own = Renamed(name, rename.from, to);
      if (!own.has_value()) continue;
      matched = true;
      if (model_.contains(*own)) {
        Take(entry, name, *own);
      } else {
        Add(entry, true,
            absl::StrCat("is `", *own, "`", name == rename.from ? "" : absl::StrCat(" for ", name),
                         ", which the model does not have"),
            NearestRemedy(*own, NamesOf(model_)));
      }
    }
    if (!matched) {
      Add(entry, false,
          absl::StrCat("is `", rename.from,
                       "`, which no variable or table of the checkpoint is called"),
          NearestRemedy(rename.from, NamesOf(saved_)));
    }
  }

  void Take(int entry, const std::string& from, const std::string& own) {
    const DescribedParameter &has = saved_.at(from), &wants = model_.at(own);
    for (const pb::TakenValuesProto::Name& name : taken_.names()) {
      if (name.own() != own) continue;
      return Add(entry, true,
                 absl::StrCat("gives `", own, "` the values of ", from, ", but it has those of ",
                              name.from(), " already"),
                 "name each of the model's variables and tables once");
    }
    if (has.what != wants.what) {
      return Add(entry, false,
                 absl::StrCat("is `", from, "`, a ", has.what, " in the checkpoint, but `", own,
                              "` of the model is a ", wants.what),
                 "shapes must be equal");
    }
    if (!has.partitions.empty() && !wants.partitions.empty() &&
        has.partitions != wants.partitions) {
      return Add(entry, false,
                 absl::StrCat("is `", from, "`, which was cut into other partitions than `", own,
                              "` of the model"),
                 "create it with the same number of partitions or the same partitioner");
    }
    // What is not trained needs no slots.
    if (spec_.slots && wants.optimizer != DescribeOptimizer({}) &&
        wants.optimizer != has.optimizer) {
      return Add(
          entry, false,
          absl::StrCat("is `", from, "`, which ", has.optimizer, " has trained, but `", own,
                       "` of the model has ", wants.optimizer, ": the slots mean nothing to it"),
          "leave out `slots`, or take the same optimizer");
    }
    pb::TakenValuesProto::Name* name = taken_.add_names();
    name->set_own(own);
    name->set_from(from);
  }

  const WarmStartSpec& spec_;
  const std::map<std::string, DescribedParameter> saved_;
  const std::map<std::string, DescribedParameter> model_;
  std::vector<WarmStartProblem>* const problems_;
  pb::TakenValuesProto taken_;
};

}  // namespace

pb::TakenValuesProto PlanWarmStart(const WarmStartSpec& spec, const pb::CheckpointProto& checkpoint,
                                   const pb::RoutingProto& model,
                                   std::vector<WarmStartProblem>* problems) {
  return Planner(spec, checkpoint, model, problems).Plan();
}

std::vector<std::string> UncorrectedBiases(const pb::TakenValuesProto& taken,
                                           const pb::RoutingProto& model) {
  std::vector<std::string> names;
  if (!taken.slots()) return names;
  std::set<std::string> begun;
  for (const pb::TakenValuesProto::Name& name : taken.names()) begun.insert(name.own());
  const auto look = [&](const std::string& name, const pb::OptimizerProto& optimizer) {
    const bool counts_steps =
        (optimizer.has_adam() && optimizer.adam().bias_correction() != "row") ||
        (optimizer.has_adamw() && optimizer.adamw().bias_correction() != "row");
    if (counts_steps && !begun.contains(name)) names.push_back(name);
  };
  for (const pb::VariableProto& variable : model.variables())
    look(variable.name(), variable.optimizer());
  for (const pb::TableProto& table : model.tables()) look(table.name(), table.optimizer());
  return names;
}

absl::Status ToStatus(const std::vector<WarmStartProblem>& problems) {
  if (problems.empty()) return absl::OkStatus();
  std::vector<std::string> texts;
  for (size_t i = 0; i < problems.size() && i < kMostNamed; ++i) {
    const WarmStartProblem& problem = problems[i];
    texts.push_back(absl::StrCat(problem.entry < 0 ? ""
                                                   : absl::StrCat("map[", problem.entry, "].",
                                                                  problem.in_to ? "to " : "from "),
                                 problem.message, "; ", problem.remedy));
  }
  return absl::InvalidArgumentError(absl::StrCat("a warm start is not possible (", problems.size(),
                                                 " problems): ", absl::StrJoin(texts, "; ")));
}

std::vector<std::string> NamesInModel(const WarmStartSpec& spec, const std::string& from) {
  if (spec.map.empty()) return {from};
  std::vector<std::string> names;
  for (const WarmStartSpec::Rename& rename : spec.map) {
    if (auto own = Renamed(from, rename.from, rename.to.empty() ? rename.from : rename.to))
      names.push_back(*std::move(own));
  }
  return names;
}

}  // namespace mu
