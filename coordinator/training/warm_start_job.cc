#include "coordinator/training/warm_start_job.h"

#include "absl/strings/str_cat.h"
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

std::vector<std::string> CheckWarmStart(const muster::JobProto& job, const PaperFactory& created) {
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
  PlanWarmStart(WarmStartOf(job), *manifest, Created(job, created), &problems);
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
