// Soaking: a job is trained again and again while its processes are taken away as spot machines
// are, and a record says what that did to it.
//
//   RECORD/runs.jsonl   a line for each run (soak_record.h)
//   RECORD/index.html   what they show (soak_page.h)
//   RECORD/runs/        reports and output of the runs that ended badly
//
// `coordinator soak JOB.yaml` does it with job files; a program of one's own passes what trains.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "coordinator/soak/soak_cost.h"
#include "coordinator/soak/soak_judge.h"
#include "coordinator/soak/soak_record.h"

namespace mu {

inline constexpr char kSoakPageName[] = "index.html";

// What one run is asked for.
struct SoakRun {
  // Faults to inject (coordinator/launch/chaos_plan.h), which go on where those of the record's
  // earlier runs ended; for ClusterOptions::chaos. Empty: none.
  std::string chaos;
  // An empty folder of the run's own, absolute. It is removed if the run ends well.
  std::string directory;
  // Longer than that it hangs: end it.
  absl::Duration limit;
};

struct SoakJob {
  std::string name;
  // Runs with equal text are compared with each other: what was trained, on how many machines.
  std::string setup;
  // Trains once. Of what it returns it fills status, error, train_seconds, samples, steps, metric,
  // quality, losses and failures, perhaps by FillFromStats() or FillFromReport(), and workers, ps
  // and exact. `seconds` is how long the call took, unless it is filled. An error ends the soak: it
  // says that there is nothing to soak, such as a job that is wrong.
  std::function<absl::StatusOr<SoakRecord>(const SoakRun&)> train;
};

struct SoakOptions {
  std::string record;  // the folder
  // What is injected: rates like those of spot machines, but faster.
  std::string preemption = "worker:kill:every=20s,ps:kill:every=3m";
  // Disturbed runs of each job, in turn, until `rounds` of them were done or no run may begin any
  // more, since `lasts` is over.
  std::optional<uint64_t> rounds = 1;
  absl::Duration lasts = absl::InfiniteDuration();
  uint64_t calm_every = 10;  // an undisturbed run before each so many disturbed ones
  SoakLimits limits;
  std::optional<SoakPrices> prices;
  std::atomic<int>* stop = nullptr;  // > 0: begin no further run
  // How it goes, a line for each run.
  std::function<void(const std::string&)> tell;
};

struct SoakResult {
  uint64_t runs = 0;     // of this soak, those that somebody stopped left out
  uint64_t flagged = 0;  // of them
  std::string page;      // path of index.html
};

// INVALID_ARGUMENT for a record that cannot be read, wrong preemptions or no jobs; errors of files,
// and of SoakJob::train.
absl::StatusOr<SoakResult> Soak(const SoakOptions& options, const std::vector<SoakJob>& jobs);

// Makes RECORD/index.html of what the record holds.
absl::Status WriteSoakPage(const SoakOptions& options);

}  // namespace mu
