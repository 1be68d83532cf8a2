// A program that soaks its own job: docs/program.md.
#include <atomic>
#include <cstdio>
#include <thread>

#include "common/base/mutex.h"
#include "examples/guide/guide.h"

namespace guide {

// [soak]
// Trains undisturbed, then while a worker is killed. The folder `record` says what that did.
absl::StatusOr<mu::SoakResult> SoakVisits(mu::ClusterOptions options, const std::string& file,
                                          const std::string& record) {
  const auto train = [&](const mu::SoakRun& run) -> absl::StatusOr<mu::SoakRecord> {
    options.job_dir = run.directory;
    options.chaos = run.chaos;  // empty: undisturbed
    MU_ASSIGN_OR_RETURN(auto c, Launch("local", options));
    const std::string folder = run.directory + "/checkpoints";
    c->EnableRecovery(folder);
    MU_ASSIGN_OR_RETURN(ClickModel model, ClickModel::Create(*c));
    MU_ASSIGN_OR_RETURN(mu::Dataset data,
                        c->CreateDataset(Visits(file).Shuffle(1000).Name("train")));
    MU_ASSIGN_OR_RETURN(mu::Dataset test,
                        c->CreateDataset(Visits(file).Epochs(1).Batch(100).Name("test")));
    MU_ASSIGN_OR_RETURN(mu::Function step, DefineStep(*c, model, data));
    MU_ASSIGN_OR_RETURN(mu::Function forward, DefineForward(*c, model, test));
    mu::Trainer trainer(
        c.get(),
        {.step = step,
         .data = data,
         .evaluation =
             mu::EvaluationSpec{.function = forward, .data = test, .metrics = {"logloss"}},
         .checkpoints = mu::CheckpointerOptions{.directory = folder, .every = absl::Seconds(10)}});
    // Ends a run that takes far longer than the undisturbed ones.
    std::atomic<int> stop = 0;
    mu::Notification over;
    std::thread watch([&] {
      if (!over.WaitFor(run.limit)) stop = 1;
    });
    const absl::StatusOr<mu::FitResult> fit =
        trainer.Fit({.epochs = 200, .stop = &stop, .eval_every = {.epochs = 200}});
    over.Notify();
    watch.join();
    mu::SoakRecord result;
    mu::FillFromStats(c->Stats(), fit, &result);
    if (stop > 0) result.status = "hung";
    result.workers = result.ps = 2;
    return result;
  };
  return mu::Soak(
      {.record = record,
       .preemption = "worker:kill:every=100ms:count=1",
       .tell = [](const std::string& line) { std::printf("%s\n", line.c_str()); }},
      {{.name = "visits", .setup = "200 epochs, 2 workers, 2 servers", .train = train}});
}
// [/soak]

}  // namespace guide
