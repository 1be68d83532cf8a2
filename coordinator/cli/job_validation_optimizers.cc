// The optimizer of a job, what some of its parameters have of their own, and the schedule of
// learning rates.
#include <cmath>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/optimizer/optimizer_settings.h"
#include "common/optimizer/schedule.h"
#include "coordinator/cli/job_validation.h"

namespace mu {
namespace {

void ValidateOptimizer(const pb::OptimizerProto& optimizer, const std::string& key,
                       std::vector<JobProblem>* problems) {
  if (optimizer.kind_case() == pb::OptimizerProto::KIND_NOT_SET) {
    problems->push_back({key, "names no optimizer",
                         "write for example optimizer: {adagrad: {learning_rate: 0.02}}; "
                         "docs/reference/optimizers.md lists them",
                         true});
  }
  for (const OptimizerProblem& problem : ProblemsOf(optimizer)) {
    problems->push_back(
        {absl::StrCat(key, ".", problem.key), problem.message, problem.remedy, true});
  }
}

void ValidatePartitioner(const pb::PartitionerProto& partitioner, const std::string& key,
                         std::vector<JobProblem>* problems) {
  const auto number = [&](const char* name, uint64_t value) {
    if (value > 0) return;
    problems->push_back({absl::StrCat(key, ".", name), "must be above 0",
                         "without a partitioner, variables are cut by their size"});
  };
  switch (partitioner.kind_case()) {
    case pb::PartitionerProto::kFixedShards:
      return number("fixed_shards", partitioner.fixed_shards());
    case pb::PartitionerProto::kMinSize:
      return number("min_size", partitioner.min_size());
    case pb::PartitionerProto::kMaxSize:
      return number("max_size", partitioner.max_size());
    case pb::PartitionerProto::KIND_NOT_SET:
      problems->push_back({key, "names no partitioner",
                           "write for example partitioner: {fixed_shards: 4}; min_size and "
                           "max_size are bytes of a partition",
                           true});
  }
}

void ValidateRule(const pb::ParameterRuleProto& rule, const std::string& key,
                  std::vector<JobProblem>* problems) {
  if (rule.match().empty()) {
    problems->push_back({key + ".match", "names no variables or tables",
                         "write a name or a pattern such as \"embedding_*\"", true});
  }
  if (rule.has_optimizer()) ValidateOptimizer(rule.optimizer(), key + ".optimizer", problems);
  const float factor = rule.learning_rate_factor();
  if (rule.has_learning_rate_factor() && !(factor > 0 && std::isfinite(factor))) {
    problems->push_back({key + ".learning_rate_factor", "must be above 0",
                         "to train these not at all, write trainable: false"});
  }
  const bool frozen = rule.has_trainable() && !rule.trainable();
  if (frozen && (rule.has_optimizer() || rule.has_learning_rate_factor())) {
    problems->push_back({key + ".trainable", "is false, so nothing else about training applies",
                         "remove `optimizer` and `learning_rate_factor` here"});
  } else if (!rule.has_optimizer() && !rule.has_learning_rate_factor() && !rule.has_trainable() &&
             !rule.has_partitioner()) {
    problems->push_back({key, "changes nothing",
                         "give it optimizer, learning_rate_factor, trainable or partitioner"});
  }
  if (rule.has_partitioner())
    ValidatePartitioner(rule.partitioner(), key + ".partitioner", problems);
}

}  // namespace

void ValidateOptimizers(const pb::JobProto& job, std::vector<JobProblem>* problems) {
  ValidateOptimizer(job.optimizer(), "optimizer", problems);
  for (int i = 0; i < job.parameters_size(); ++i)
    ValidateRule(job.parameters(i), absl::StrCat("parameters[", i, "]"), problems);
  for (const ScheduleProblem& problem :
       ProblemsOf(job.training().schedule(), /*rest_of_job=*/true)) {
    problems->push_back(
        {absl::StrCat("training.schedule.", problem.key), problem.message, problem.remedy, true});
  }
}

}  // namespace mu
