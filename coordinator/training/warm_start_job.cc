#include "coordinator/training/warm_start_job.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status.h"
#include "coordinator/cluster/checkpoint_directory.h"
#include "coordinator/cluster/checkpoint_manifest.h"
#include "coordinator/cluster/checkpoint_verify.h"

namespace mu {
namespace {

constexpr char kKey[] = "warm_start";

// What the coordinator would hold.
pb::RoutingProto Created(const muster::JobProto& job, const PaperFactory& factory) {
  pb::RoutingProto routing;
  for (const Variable& variable : factory.variables()) {
    *routing.add_variables() = variable.proto();
    if (factory.HasDefaultOptimizer(variable.name()))
      *routing.mutable_variables()->rbegin()->mutable_optimizer() = job.optimizer();
  }
  for (const EmbeddingTable& table : factory.tables()) {
    *routing.add_tables() = table.proto();
    if (factory.HasDefaultOptimizer(table.name()))
      *routing.mutable_tables()->rbegin()->mutable_optimizer() = job.optimizer();
  }
  return routing;
}

std::string UncorrectedNote(std::vector<std::string> names) {
  constexpr size_t kMostNamed = 5;
  const size_t count = names.size();
  if (count > kMostNamed) names.resize(kMostNamed);
  return absl::StrCat(
      kKey, ".slots: ", absl::StrJoin(names, ", "),
      count > kMostNamed ? absl::StrCat(" and ", count - kMostNamed, " more") : "",
      count == 1 ? " is" : " are",
      " not taken, and the optimizer counts steps from those of the other run: the first updates "
      "are several times too large there; give the optimizer `bias_correction: row` for them, "
      "with a rule of `parameters`");
}

}  // namespace

WarmStartSpec WarmStartOf(const muster::JobProto& job) {
  WarmStartSpec spec{.slots = job.warm_start().slots()};
  for (const pb::WarmStartProto::Names& names : job.warm_start().map())
    spec.map.push_back({names.from(), names.to()});
  return spec;
}

absl::StatusOr<std::string> WarmStartCheckpoint(const muster::JobProto& job) {
  return FindCheckpoint(job.warm_start().checkpoint());
}

std::vector<std::string> CheckWarmStart(const muster::JobProto& job, const PaperFactory& created,
                                        std::vector<std::string>* notes) {
  const auto wrong = [](const absl::Status& status) {
    return std::vector<std::string>{
        absl::StrCat(kKey, ".checkpoint: ", std::string(status.message()),
                     "; name a checkpoint, or the folder of a run that has one")};
  };
  const auto directory = WarmStartCheckpoint(job);
  if (!directory.ok()) return wrong(directory.status());
  const auto manifest = ReadManifest(*directory);
  if (!manifest.ok()) return wrong(manifest.status());
  if (const absl::Status sizes = CheckSizes(*directory, *manifest); !sizes.ok())
    return wrong(sizes);
  std::vector<WarmStartProblem> problems;
  const pb::RoutingProto model = Created(job, created);
  const pb::TakenValuesProto taken = PlanWarmStart(WarmStartOf(job), *manifest, model, &problems);
  if (const std::vector<std::string> names = UncorrectedBiases(taken, model);
      !names.empty() && problems.empty()) {
    notes->push_back(UncorrectedNote(names));
  }
  std::vector<std::string> texts;
  for (const WarmStartProblem& problem : problems) {
    const std::string key = problem.entry < 0 ? kKey
                                              : absl::StrCat(kKey, ".map[", problem.entry, "].",
                                                             problem.in_to ? "to" : "from");
    texts.push_back(absl::StrCat(key, ": ", problem.message, "; ", problem.remedy));
  }
  return texts;
}

}  // namespace mu
