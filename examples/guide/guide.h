// The pieces of docs/program.md, each in a function, for the tests that run them (guide_test.cc).
// What stands between `// [name]` and `// [/name]` is a code block of that page.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/metrics/binary_metrics.h"
#include "coordinator/frontend/layers.h"
#include "coordinator/muster.h"

namespace guide {

// [visits]
inline mu::DatasetSpec Visits(const std::string& file) {
  return mu::Csv({file})
      .Header()
      .Id("user", 1000)           // int64 [batch]; an id from 1000 on is a bad record
      .Number("age")              // float32 [batch]; a missing field is 0
      .Number("hour")             // float32 [batch]
      .Hash("job", 100)           // int64 [batch], hash of the text below 100
      .Label("clicked", {"yes"})  // float32 [batch], 1 or 0
      .Batch(20);                 // records of a step
}
// [/visits]

// [click-model]
struct ClickModel {
  mu::EmbeddingTable users, jobs;
  mu::Mlp mlp;
  mu::Variable steps;

  // A VariableFactory is what creates variables: the coordinator.
  static absl::StatusOr<ClickModel> Create(mu::VariableFactory& c) {
    const mu::Normal normal{.mean = 0.0f, .stddev = 0.05f};
    ClickModel m;
    MU_ASSIGN_OR_RETURN(
        m.users,
        c.CreateEmbeddingTable({.name = "users", .rows = 1000, .dim = 4, .initializer = normal}));
    MU_ASSIGN_OR_RETURN(
        m.jobs,
        c.CreateEmbeddingTable({.name = "jobs", .rows = 100, .dim = 4, .initializer = normal}));
    MU_ASSIGN_OR_RETURN(m.mlp, mu::Mlp::Create(c, "mlp", 10, {16, 1}));
    MU_ASSIGN_OR_RETURN(
        m.steps, c.CreateVariable({.name = "steps", .dtype = mu::kInt64, .trainable = false}));
    return m;
  }

  mu::Sym Logits(const mu::BatchRef& batch) const {  // [batch]
    auto age = mu::Reshape(batch["age"] / 100, {-1, 1});
    auto hour = mu::Reshape(batch["hour"] / 24, {-1, 1});
    auto user = mu::EmbeddingLookup(users, batch["user"]);  // [batch, 4]
    auto job = mu::EmbeddingLookup(jobs, batch["job"]);
    return mu::Reshape(mlp(mu::Concat({user, job, age, hour}, 1)), {-1});
  }
};
// [/click-model]

// training.cc
absl::StatusOr<mu::Function> DefineStep(mu::Coordinator& c, const ClickModel& model,
                                        const mu::Dataset& data);
absl::StatusOr<mu::Function> DefineForward(mu::Coordinator& c, const ClickModel& model,
                                           const mu::Dataset& data);
// layers.cc: returns the table of layers
absl::StatusOr<std::string> TrainLayers(mu::Coordinator& c, const std::string& file);
absl::Status TrainAndTell(mu::Coordinator& c, const std::string& file,
                          const std::atomic<int>* stop);
absl::StatusOr<double> OneEpoch(mu::Coordinator& c, const mu::Function& step,
                                const mu::Dataset& data, uint64_t epoch);
absl::StatusOr<mu::Function> DefinePart(mu::Coordinator& c, const ClickModel& model,
                                        const mu::Dataset& data, const std::string& name,
                                        const std::vector<std::string>& part);
absl::StatusOr<double> TrainInTurn(mu::Coordinator& c, const std::vector<mu::Function>& parts,
                                   int rounds);
absl::StatusOr<mu::BinaryMetrics> Evaluate(mu::Coordinator& c, const mu::Function& forward,
                                           const mu::Dataset& data);
absl::StatusOr<mu::FitResult> FitWhileItHelps(mu::Coordinator& c, const std::string& file,
                                              const std::string& folder);
absl::StatusOr<std::vector<mu::Evaluation>> EvaluateEach(mu::Coordinator& c,
                                                         const std::string& file,
                                                         const std::string& run);
absl::StatusOr<uint32_t> TrainWhileItHelps(mu::Coordinator& c, const std::string& file,
                                           const std::string& folder);

// parameters.cc
absl::Status CreateOneOfEach(mu::Coordinator& c);
absl::Status ReadAndAssign(mu::Coordinator& c, const ClickModel& model);
absl::Status MoveRows(mu::Coordinator& c, const ClickModel& model, const std::string& path);
absl::StatusOr<mu::Function> DefineCrosses(mu::Coordinator& c, const mu::Dataset& visits);
absl::StatusOr<std::vector<int64_t>> StepsByWorker(mu::Coordinator& c);

// data.cc
mu::DatasetSpec VisitsWithTags(const std::string& file);
absl::StatusOr<mu::Function> DefineTagged(mu::Coordinator& c, const mu::Dataset& tagged);
absl::StatusOr<mu::Dataset> Clicks(mu::Coordinator& c, const std::string& files);
absl::Status CountRecords(mu::Coordinator& c, const std::string& file);
absl::StatusOr<uint64_t> EveryWorkerByItself(mu::Coordinator& c, const std::string& file);

// jobs.cc
absl::StatusOr<std::unique_ptr<mu::Coordinator>> Launch(const std::string& where,
                                                        mu::ClusterOptions options);
absl::StatusOr<mu::TrainResult> TrainOrContinue(mu::Coordinator& c, const std::string& file,
                                                const std::string& folder,
                                                mu::TrainOptions options);
absl::Status EpochsOrContinue(mu::Coordinator& c, const std::string& file,
                              const std::string& folder, uint64_t epochs);
absl::StatusOr<size_t> SurviveLosses(mu::ClusterOptions options, const std::string& file);
absl::Status FailAndGoOn(mu::Coordinator& c, const std::string& file);
int Report(const absl::Status& status);

// soak.cc
absl::StatusOr<mu::SoakResult> SoakVisits(mu::ClusterOptions options, const std::string& file,
                                          const std::string& record);

}  // namespace guide
