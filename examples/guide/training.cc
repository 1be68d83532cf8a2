// Functions, training, evaluation: docs/program.md.
#include <algorithm>
#include <cstdio>
#include <deque>

#include "examples/guide/guide.h"

namespace guide {

// [functions]
absl::StatusOr<mu::Function> DefineStep(mu::Coordinator& c, const ClickModel& model,
                                        const mu::Dataset& data) {
  return c.DefineFunction("step", [&](mu::FunctionBuilder& f) {
    mu::BatchRef batch = f.NextBatch(data);
    auto loss = mu::ReduceMean(mu::SigmoidCrossEntropy(model.Logits(batch), batch["clicked"]));
    f.Minimize(loss);
    mu::AssignAdd(model.steps, 1);  // counts the steps that have been applied
    f.Return("loss", loss);
  });
}

absl::StatusOr<mu::Function> DefineForward(mu::Coordinator& c, const ClickModel& model,
                                           const mu::Dataset& data) {
  return c.DefineFunction("forward", [&](mu::FunctionBuilder& f) {
    mu::BatchRef batch = f.NextBatch(data);
    f.Return("prediction", mu::Sigmoid(model.Logits(batch)));
    f.Return("label", batch["clicked"]);
  });
}
// [/functions]

// [train]
absl::Status TrainAndTell(mu::Coordinator& c, const std::string& file,
                          const std::atomic<int>* stop) {
  MU_ASSIGN_OR_RETURN(ClickModel model, ClickModel::Create(c));
  MU_ASSIGN_OR_RETURN(mu::Dataset data, c.CreateDataset(Visits(file).Shuffle(1000)));
  MU_ASSIGN_OR_RETURN(mu::Function step, DefineStep(c, model, data));
  MU_ASSIGN_OR_RETURN(
      mu::TrainResult result,
      mu::Train(c, step, data, {.epochs = 3, .stop = stop}, [](const mu::TrainEvent& event) {
        std::printf("epoch %u, %llu of %llu steps, loss %.3f\n", event.epoch,
                    static_cast<unsigned long long>(event.steps),
                    static_cast<unsigned long long>(event.total_steps), event.loss);
      }));
  std::printf("%llu records in %.1f s%s\n", static_cast<unsigned long long>(result.samples),
              result.seconds, result.stopped ? ", stopped" : "");
  return absl::OkStatus();
}
// [/train]

// [own-loop]
// Trains what is left of an epoch (from 0); returns the mean loss.
absl::StatusOr<double> OneEpoch(mu::Coordinator& c, const mu::Function& step,
                                const mu::Dataset& data, uint64_t epoch) {
  MU_ASSIGN_OR_RETURN(const mu::DataProgress at, c.ProgressOf(data));
  uint64_t left = at.left;  // less than an epoch in a job that is continued
  if (at.epoch != epoch) {
    MU_ASSIGN_OR_RETURN(left, c.BatchesInEpoch(data, epoch));
  }
  double loss_sum = 0, samples = 0;
  std::deque<mu::RemoteValue> window;  // calls whose results have not been taken
  while (left > 0 || !window.empty()) {
    if (left > 0 && window.size() < 8) {
      const auto steps = static_cast<uint32_t>(std::min<uint64_t>(left, 4));
      window.push_back(c.Schedule(step, {.steps = steps}));  // returns at once
      left -= steps;
      continue;
    }
    const absl::StatusOr<mu::FunctionResult> result = window.front().Fetch();  // waits
    window.pop_front();
    if (!result.ok()) {
      // CANCELLED, perhaps, because another call failed: Join knows the first error.
      const absl::Status first = c.Join();
      return first.ok() ? result.status() : first;
    }
    if (result->samples() == 0) continue;
    MU_ASSIGN_OR_RETURN(const double loss, result->Mean("loss"));
    loss_sum += loss * static_cast<double>(result->samples());
    samples += static_cast<double>(result->samples());
  }
  MU_RETURN_IF_ERROR(c.Join());
  return samples > 0 ? loss_sum / samples : 0;
}
// [/own-loop]

// [in-turn]
// A step that trains a part of the model: the parameters whose names match one of `part`.
absl::StatusOr<mu::Function> DefinePart(mu::Coordinator& c, const ClickModel& model,
                                        const mu::Dataset& data, const std::string& name,
                                        const std::vector<std::string>& part) {
  return c.DefineFunction(name, [&](mu::FunctionBuilder& f) {
    mu::BatchRef batch = f.NextBatch(data);
    auto loss = mu::ReduceMean(mu::SigmoidCrossEntropy(model.Logits(batch), batch["clicked"]));
    f.Minimize(loss, {.only = part});
    f.Return("loss", loss);
  });
}

// Trains with each of the functions in turn, this many rounds; returns the last turn's mean loss.
absl::StatusOr<double> TrainInTurn(mu::Coordinator& c, const std::vector<mu::Function>& parts,
                                   int rounds) {
  constexpr int kCalls = 4;
  double loss = 0;
  for (int round = 0; round < rounds; ++round) {
    for (const mu::Function& part : parts) {
      // The calls of a turn run at the same time, on any workers.
      std::vector<mu::RemoteValue> calls;
      for (int i = 0; i < kCalls; ++i) calls.push_back(c.Schedule(part, {.steps = 5}));
      MU_RETURN_IF_ERROR(c.Join());  // the next turn begins with all updates of this one
      loss = 0;
      for (const mu::RemoteValue& call : calls) {
        MU_ASSIGN_OR_RETURN(const mu::FunctionResult result, call.Fetch());
        MU_ASSIGN_OR_RETURN(const double mean, result.Mean("loss"));
        loss += mean / kCalls;
      }
    }
  }
  return loss;
}
// [/in-turn]

// [evaluate]
absl::StatusOr<mu::BinaryMetrics> Evaluate(mu::Coordinator& c, const mu::Function& forward,
                                           const mu::Dataset& data) {
  mu::BinaryMetrics metrics;
  MU_RETURN_IF_ERROR(mu::ForEachPrediction(c, forward, data, {},
                                           [&](absl::Span<const float> predictions,
                                               absl::Span<const float> labels) -> absl::Status {
                                             return metrics.Add(predictions, labels);
                                           })
                         .status());
  return metrics;
}
// [/evaluate]

// [trainer]
absl::StatusOr<mu::FitResult> FitWhileItHelps(mu::Coordinator& c, const std::string& file,
                                              const std::string& folder) {
  c.EnableRecovery(folder);  // before anything is created
  MU_ASSIGN_OR_RETURN(ClickModel model, ClickModel::Create(c));
  MU_ASSIGN_OR_RETURN(
      mu::Dataset train,
      c.CreateDataset(Visits(file).Records(4, {0, 1, 2}).Shuffle(1000).Name("train")));
  MU_ASSIGN_OR_RETURN(
      mu::Dataset test,
      c.CreateDataset(Visits(file).Records(4, {3}).Epochs(1).Batch(100).Name("test")));
  MU_ASSIGN_OR_RETURN(mu::Function step, DefineStep(c, model, train));
  MU_ASSIGN_OR_RETURN(mu::Function forward, DefineForward(c, model, test));
  mu::Trainer trainer(
      &c, {.step = step,
           .data = train,
           .evaluation =
               mu::EvaluationSpec{.function = forward, .data = test, .metrics = {"logloss", "auc"}},
           .checkpoints = mu::CheckpointerOptions{.directory = folder},
           .callbacks = {.on_evaluation = [](const mu::Evaluation& evaluation) {
             std::printf("epoch %u: logloss %.4f%s\n", evaluation.epoch,
                         evaluation.metrics.at("logloss"),
                         evaluation.best_so_far ? ", the best so far" : "");
           }}});
  MU_ASSIGN_OR_RETURN(
      mu::FitResult result,
      trainer.Fit({.epochs = 20,
                   .eval_every = {.epochs = 1},
                   .early_stopping = mu::EarlyStoppingOptions{.metric = "logloss", .patience = 2},
                   .keep_best = mu::KeepBestOptions{.metric = "auc", .count = 2}}));
  MU_RETURN_IF_ERROR(trainer.Save().status());
  return result;
}
// [/trainer]

// [follow]
// Evaluates each checkpoint of a run that another program trains.
absl::StatusOr<std::vector<mu::Evaluation>> EvaluateEach(mu::Coordinator& c,
                                                         const std::string& file,
                                                         const std::string& run) {
  const auto define = [&](mu::Coordinator& own) -> absl::StatusOr<mu::EvaluationSpec> {
    mu::EvaluationSpec spec;
    MU_ASSIGN_OR_RETURN(ClickModel model, ClickModel::Create(own));  // as the run has it
    MU_ASSIGN_OR_RETURN(
        spec.data,
        own.CreateDataset(Visits(file).Records(4, {3}).Epochs(1).Batch(100).Name("test")));
    MU_ASSIGN_OR_RETURN(spec.function, DefineForward(own, model, spec.data));
    spec.metrics = {"logloss", "auc"};
    return spec;
  };
  return mu::Follow(&c, run, define, {.on_evaluation = [](const mu::Evaluation& evaluation) {
    std::printf("%s: %zu metrics\n", evaluation.checkpoint.c_str(), evaluation.metrics.size());
  }});
}
// [/follow]

// [early-stopping]
// Trains until two epochs have brought nothing; returns the best epoch, whose values the servers
// have then.
absl::StatusOr<uint32_t> TrainWhileItHelps(mu::Coordinator& c, const std::string& file,
                                           const std::string& best) {
  MU_ASSIGN_OR_RETURN(ClickModel model, ClickModel::Create(c));
  MU_ASSIGN_OR_RETURN(
      mu::Dataset train,
      c.CreateDataset(Visits(file).Records(4, {0, 1, 2}).Shuffle(1000).Name("train")));
  MU_ASSIGN_OR_RETURN(
      mu::Dataset test,
      c.CreateDataset(Visits(file).Records(4, {3}).Epochs(1).Batch(100).Name("test")));
  MU_ASSIGN_OR_RETURN(mu::Function step, DefineStep(c, model, train));
  MU_ASSIGN_OR_RETURN(mu::Function forward, DefineForward(c, model, test));
  mu::EarlyStopping stopping({.metric = "logloss", .patience = 2, .better = mu::Better::kLess});
  uint32_t best_epoch = 0;
  for (uint32_t epoch = 1; epoch <= 20 && !stopping.stopped(); ++epoch) {
    // `epochs` counts from the job's beginning, so this trains one more.
    MU_ASSIGN_OR_RETURN(const mu::TrainResult trained,
                        mu::Train(c, step, train, {.epochs = epoch}));
    MU_ASSIGN_OR_RETURN(const mu::BinaryMetrics metrics, Evaluate(c, forward, test));
    if (!stopping.Observe(metrics.logloss(), trained.end.steps, best)) continue;
    best_epoch = epoch;
    MU_RETURN_IF_ERROR(c.Save(best, {}, {.replace = true}).status());
  }
  MU_RETURN_IF_ERROR(c.Restore(best).status());
  return best_epoch;
}
// [/early-stopping]

}  // namespace guide
