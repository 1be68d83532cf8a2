// Variables, tables, features: docs/program.md.
#include <cstdio>
#include <numeric>
#include <string>
#include <vector>

#include "examples/guide/guide.h"

namespace guide {

// [parameters]
absl::Status CreateOneOfEach(mu::Coordinator& c) {
  // A scalar. Without `optimizer` it gets the coordinator's default_optimizer.
  MU_ASSIGN_OR_RETURN(mu::Variable scale,
                      c.CreateVariable({.name = "scale", .initializer = mu::Constant{1.0f}}));
  // A matrix, with an optimizer of its own, cut into 4 partitions of whole rows.
  MU_ASSIGN_OR_RETURN(mu::Variable kernel,
                      c.CreateVariable({.name = "kernel",
                                        .shape = {64, 16},
                                        .initializer = mu::GlorotUniform(64, 16),
                                        .optimizer = mu::Sgd{.learning_rate = 0.01f},
                                        .partitioner = mu::FixedShards{4}}));
  // Not trained: Minimize leaves it alone, AssignAdd and Assign change it.
  MU_ASSIGN_OR_RETURN(mu::Variable mean, c.CreateVariable({.name = "mean", .trainable = false}));
  // A trillion possible rows. Only those that training has looked up need memory, in pages of 4 KB:
  // ids that lie together take less than those that hashing scatters.
  MU_ASSIGN_OR_RETURN(
      mu::EmbeddingTable pages,
      c.CreateEmbeddingTable(
          {.name = "pages",
           .rows = 1'000'000'000'000,
           .dim = 8,
           .initializer = mu::Uniform{-0.05f, 0.05f},
           .optimizer = mu::Adagrad{.learning_rate = 0.1f, .initial_accumulator = 0.1f}}));
  return absl::OkStatus();
}
// [/parameters]

// [read-and-assign]
absl::Status ReadAndAssign(mu::Coordinator& c, const ClickModel& model) {
  MU_RETURN_IF_ERROR(c.Join());  // else steps may change the values meanwhile
  MU_ASSIGN_OR_RETURN(mu::Tensor steps, c.Read(model.steps));
  MU_ASSIGN_OR_RETURN(mu::Tensor rows, c.ReadRows(model.users, {0, 7}));  // [2, 4]
  MU_RETURN_IF_ERROR(c.Assign(model.steps, mu::Tensor::Scalar<int64_t>(0)));
  MU_RETURN_IF_ERROR(c.Assign(model.mlp.layers()[1].bias(), mu::Tensor::Of<float>({1}, {0.5f})));
  return absl::OkStatus();
}
// [/read-and-assign]

// [rows]
// Takes rows from another program, says where everything is, and gives rows away.
absl::Status MoveRows(mu::Coordinator& c, const ClickModel& model, const std::string& path) {
  MU_RETURN_IF_ERROR(
      c.AssignRows(model.jobs, {5, 99}, mu::Tensor::Of<float>({2, 4}, {1, 1, 1, 1, 2, 2, 2, 2})));
  MU_ASSIGN_OR_RETURN(mu::Tensor kernel,
                      c.ReadRows(model.mlp.layers()[0].kernel(), 0, 2));  // [2, 16]
  MU_RETURN_IF_ERROR(c.AssignRows(model.mlp.layers()[0].kernel(), {8, 9}, kernel));
  MU_RETURN_IF_ERROR(c.ReadTable(model.users, [](const mu::Coordinator::TableRows& piece) {
    std::printf("%zu rows, the first one is user %lld\n", piece.ids.size(),
                static_cast<long long>(piece.ids[0]));
    return absl::OkStatus();
  }));
  MU_ASSIGN_OR_RETURN(std::vector<mu::ParameterInfo> infos, c.Variables());
  std::printf("%s", mu::ParametersTable(infos).c_str());
  MU_ASSIGN_OR_RETURN(uint64_t rows, mu::ExportTable(c, model.jobs, path));
  MU_ASSIGN_OR_RETURN(uint64_t same, mu::ImportTable(c, model.jobs, path));
  return rows == same ? absl::OkStatus() : absl::InternalError("rows were lost");
}
// [/rows]

// [features]
absl::StatusOr<mu::Function> DefineCrosses(mu::Coordinator& c, const mu::Dataset& visits) {
  // One table for four features: each has rows of its own.
  constexpr int64_t kAges = 4, kJobs = 100, kHours = 24, kCrosses = 1000;
  constexpr int64_t kJobAndHour = kAges, kUserOfTen = kJobAndHour + kJobs * kHours;
  constexpr int64_t kUserAndQuarter = kUserOfTen + 10;
  MU_ASSIGN_OR_RETURN(
      mu::EmbeddingTable weights,
      c.CreateEmbeddingTable({.name = "weights", .rows = kUserAndQuarter + kCrosses, .dim = 1}));
  return c.DefineFunction("crosses", [&](mu::FunctionBuilder& f) {
    mu::BatchRef batch = f.NextBatch(visits);
    // Buckets by thresholds: 0 below 18, 1 below 30, 2 below 50, else 3.
    auto older = [&](float age) { return mu::Cast(batch["age"] > age, mu::kInt64); };
    auto age = older(17.5f) + older(29.5f) + older(49.5f);
    // A cross of two ids: job and hour have a row for each pair.
    auto hour = mu::Cast(mu::Maximum(mu::Minimum(batch["hour"], kHours - 1), 0), mu::kInt64);
    auto job_and_hour = batch["job"] * kHours + hour + kJobAndHour;
    // Many ids in few rows.
    auto user = mu::Modulo(batch["user"], 10) + kUserOfTen;
    // A cross that would have too many rows: hashed. Quarters of a day are hours divided by 6.
    auto quarter = mu::FloorDivide(hour, 6);
    auto user_and_quarter = mu::HashCross({batch["user"], quarter}, kCrosses) + kUserAndQuarter;
    // [batch, 4] ids -> [batch, 4, 1] weights -> [batch] logits
    auto column = [](const mu::Sym& ids) { return mu::Reshape(ids, {-1, 1}); };
    auto ids =
        mu::Concat({column(age), column(job_and_hour), column(user), column(user_and_quarter)}, 1);
    auto logits = mu::ReduceSum(mu::EmbeddingLookup(weights, ids), {1, 2});
    auto loss = mu::ReduceMean(mu::SigmoidCrossEntropy(logits, batch["clicked"]));
    f.Minimize(loss);
    f.Return("loss", loss);
    f.Return("ids", ids);
  });
}
// [/features]

// [per-worker]
// How many steps each of two workers has run.
absl::StatusOr<std::vector<int64_t>> StepsByWorker(mu::Coordinator& c) {
  MU_ASSIGN_OR_RETURN(
      mu::Variable steps,
      c.CreateVariable(
          {.name = "steps_by_worker", .shape = {2}, .dtype = mu::kInt64, .trainable = false}));
  const auto workers = mu::Tensor::Of<int64_t>({2}, {0, 1});
  const auto scales = mu::Tensor::Of<float>({2}, {1.0f, 0.5f});
  MU_ASSIGN_OR_RETURN(mu::Function count, c.DefineFunction("count", [&](mu::FunctionBuilder& f) {
    auto mine = mu::Equal(mu::ConstantTensor(workers), f.WorkerIndex());  // [2], one is true
    mu::AssignAdd(steps, mu::Cast(mine, mu::kInt64));
    // A constant of its own for each worker.
    f.Return("scale", mu::Gather(mu::ConstantTensor(scales), f.WorkerIndex()));
  }));
  for (int i = 0; i < 10; ++i) c.Schedule(count, {.steps = 5});
  MU_RETURN_IF_ERROR(c.Join());
  MU_ASSIGN_OR_RETURN(mu::Tensor counts, c.Read(steps));
  const auto values = counts.flat<int64_t>();
  return std::vector<int64_t>(values.begin(), values.end());
}
// [/per-worker]

}  // namespace guide
