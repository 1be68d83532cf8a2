// Jobs that outlive their machines: docs/program.md.
#include <cstdio>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "coordinator/training/checkpointer.h"
#include "coordinator/training/exit_code.h"
#include "examples/guide/guide.h"

namespace guide {

// [launch]
// `where`: in_process, local, or the HOST:PORT at which the daemons of a cluster register.
absl::StatusOr<std::unique_ptr<mu::Coordinator>> Launch(const std::string& where,
                                                        mu::ClusterOptions options) {
  options.name = "visits";
  options.workers = options.ps = 2;
  options.default_optimizer = mu::Adagrad{.learning_rate = 0.1f};
  if (where == "in_process") return mu::InProcess(options);
  if (where == "local") return mu::Local(options);
  options.listen = where;
  options.tls = {
      .cert = "certs/coordinator.crt", .key = "certs/coordinator.key", .ca = "certs/ca.crt"};
  return mu::Connect(options);
}
// [/launch]

// [resume]
absl::StatusOr<mu::TrainResult> TrainOrContinue(mu::Coordinator& c, const std::string& file,
                                                const std::string& folder,
                                                mu::TrainOptions options) {
  // Before anything is created: tables get as many partitions as their checkpoint has.
  c.EnableRecovery(folder);
  MU_ASSIGN_OR_RETURN(ClickModel model, ClickModel::Create(c));
  MU_ASSIGN_OR_RETURN(mu::Dataset data, c.CreateDataset(Visits(file).Shuffle(1000)));
  MU_ASSIGN_OR_RETURN(mu::Function step, DefineStep(c, model, data));
  mu::Checkpointer checkpointer(
      &c, {.directory = folder, .every = absl::Minutes(5), .keep = 3});  // in the background
  const absl::StatusOr<mu::RestoredJob> job = c.Restore();
  if (job.ok()) {
    options.restored = &*job;
  } else if (!absl::IsNotFound(job.status())) {
    return job.status();  // not: there is no checkpoint yet
  }
  MU_ASSIGN_OR_RETURN(mu::TrainResult result, mu::Train(c, step, data, options));
  MU_RETURN_IF_ERROR(checkpointer.TakeWhole().status());  // the last one
  return result;
}
// [/resume]

// [user-state]
absl::Status EpochsOrContinue(mu::Coordinator& c, const std::string& file,
                              const std::string& folder, uint64_t epochs) {
  c.EnableRecovery(folder);
  MU_ASSIGN_OR_RETURN(ClickModel model, ClickModel::Create(c));
  MU_ASSIGN_OR_RETURN(mu::Dataset data, c.CreateDataset(Visits(file).Shuffle(1000)));
  MU_ASSIGN_OR_RETURN(mu::Function step, DefineStep(c, model, data));
  uint64_t epoch = 0;
  double last_loss = 0;
  const absl::StatusOr<mu::RestoredJob> job = c.Restore();
  if (job.ok()) {
    MU_RETURN_IF_ERROR(c.Join());  // job->unfinished: calls that the checkpoint lacks run again
    if (std::sscanf(job->user_state.c_str(), "%lu %lg", &epoch, &last_loss) != 2) {
      return absl::DataLossError(absl::StrCat("the state of ", job->directory, " makes no sense"));
    }
  } else if (!absl::IsNotFound(job.status())) {
    return job.status();
  }
  for (; epoch < epochs; ++epoch) {
    MU_ASSIGN_OR_RETURN(const double loss, OneEpoch(c, step, data, epoch));
    if (epoch > 0) std::printf("epoch %lu: loss %.3f after %.3f\n", epoch + 1, loss, last_loss);
    last_loss = loss;
    c.SetUserState(absl::StrCat(epoch + 1, " ", loss));
    MU_RETURN_IF_ERROR(c.Checkpoint().status());
    MU_RETURN_IF_ERROR(c.PruneCheckpoints(2));
  }
  return absl::OkStatus();
}
// [/user-state]

// [recovery]
// Returns how many processes were lost.
absl::StatusOr<size_t> SurviveLosses(mu::ClusterOptions options, const std::string& file) {
  options.chaos = "ps:kill:every=300ms:count=2,worker:kill:every=200ms:count=3";
  MU_ASSIGN_OR_RETURN(auto c, Launch("local", options));
  mu::Checkpointer checkpointer(c.get(), {.directory = options.job_dir + "/checkpoints",
                                          .every = absl::Milliseconds(200),
                                          .recovery = mu::RecoveryMode::kAll});  // or kShard
  MU_ASSIGN_OR_RETURN(ClickModel model, ClickModel::Create(*c));
  MU_ASSIGN_OR_RETURN(mu::Dataset data, c->CreateDataset(Visits(file).Shuffle(1000)));
  MU_ASSIGN_OR_RETURN(mu::Function step, DefineStep(*c, model, data));
  MU_ASSIGN_OR_RETURN(mu::TrainResult result, mu::Train(*c, step, data, {.epochs = 200}));
  MU_RETURN_IF_ERROR(checkpointer.TakeWhole().status());
  const std::vector<mu::MemberFailure> failures = c->Stats().failures;
  for (const mu::MemberFailure& failure : failures) {
    std::printf("%s %u %s: %llu steps ran again\n", mu::NameOf(failure.role).c_str(), failure.index,
                failure.kind.c_str(), static_cast<unsigned long long>(failure.steps_repeated));
  }
  // Each step was applied once, whatever was lost.
  MU_ASSIGN_OR_RETURN(const mu::Tensor applied, c->Read(model.steps));
  if (applied.data<int64_t>()[0] != static_cast<int64_t>(result.steps)) {
    return absl::InternalError("a step was lost, or applied twice");
  }
  return failures.size();
}
// [/recovery]

// [errors]
absl::Status FailAndGoOn(mu::Coordinator& c, const std::string& file) {
  MU_ASSIGN_OR_RETURN(mu::Dataset data, c.CreateDataset(Visits(file)));
  MU_ASSIGN_OR_RETURN(mu::EmbeddingTable few,
                      c.CreateEmbeddingTable({.name = "few", .rows = 5, .dim = 1}));
  // While a function is defined: a column that is not there, with the line of this file.
  const auto wrong = c.DefineFunction(
      "wrong", [&](mu::FunctionBuilder& f) { f.Return("x", f.NextBatch(data)["usr"]); });
  if (wrong.ok()) return absl::InternalError("that should have failed");
  Report(wrong.status());
  // While it runs: an id that is not below 5.
  MU_ASSIGN_OR_RETURN(mu::Function step, c.DefineFunction("lookup", [&](mu::FunctionBuilder& f) {
    f.Return("mean", mu::ReduceMean(mu::EmbeddingLookup(few, f.NextBatch(data)["user"])));
  }));
  for (int i = 0; i < 5; ++i) c.Schedule(step, {.steps = 2});
  const absl::Status failed = c.Join();  // the first error; all other calls are cancelled
  if (mu::KindOf(failed) != mu::pb::ERROR_USER) return failed;
  Report(failed);
  return c.Join();  // OK: it is reported once, and the coordinator works on
}
// [/errors]

// [report]
// Prints an error; returns what the process should end with: 2 the program or its input is wrong,
// 3 a function failed while it ran, 4 machines failed, so that another try makes sense.
int Report(const absl::Status& status) {
  if (status.ok()) return mu::kExitDone;
  std::fprintf(stderr, "%s\n", std::string(status.message()).c_str());
  if (const auto detail = mu::DetailOf(status); detail.has_value() && detail->has_location()) {
    std::fprintf(stderr, "  op %s at %s:%d\n", detail->op().c_str(),
                 detail->location().file().c_str(), static_cast<int>(detail->location().line()));
  }
  return mu::ExitCodeOf(status);
}
// [/report]

}  // namespace guide
