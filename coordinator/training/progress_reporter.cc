#include "coordinator/training/progress_reporter.h"

#include <cmath>
#include <limits>

#include "common/base/steady_now.h"

namespace mu {
namespace {

constexpr absl::Duration kInterval = absl::Milliseconds(200);
constexpr absl::Duration kRateWindow = absl::Seconds(5);
constexpr double kLossSmoothing = 0.1;

}  // namespace

ProgressReporter::ProgressReporter(Coordinator* coordinator, int workers, int ps,
                                   std::function<void(const Progress&)> callback)
    : coordinator_(coordinator), callback_(std::move(callback)) {
  {
    MutexLock lock(&mutex_);
    progress_.workers = workers;
    progress_.ps = ps;
  }
  Begin("starting", 0);
  if (callback_) thread_ = std::thread([this] { Run(); });
}

ProgressReporter::~ProgressReporter() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
    changed_.SignalAll();
  }
  if (thread_.joinable()) thread_.join();
}

void ProgressReporter::Begin(const std::string& phase, uint64_t total_steps, uint32_t epochs) {
  if (coordinator_ != nullptr) coordinator_->runtime().SetPhase(phase);
  MutexLock lock(&mutex_);
  progress_.phase = phase;
  progress_.total_steps = total_steps;
  progress_.epochs = epochs;
  progress_.epoch = 0;
  progress_.steps = progress_.samples = 0;
  progress_.loss = std::numeric_limits<double>::quiet_NaN();
  phase_began_ = SteadyNow();
  recent_.clear();
}

void ProgressReporter::Update(uint32_t epoch, uint64_t steps, uint64_t total_steps,
                              uint64_t samples, double loss) {
  MutexLock lock(&mutex_);
  progress_.epoch = epoch;
  progress_.steps = steps;
  progress_.total_steps = total_steps;
  progress_.samples = samples;
  progress_.loss =
      std::isnan(progress_.loss) ? loss : progress_.loss + kLossSmoothing * (loss - progress_.loss);
}

void ProgressReporter::Repeating(uint64_t steps) {
  MutexLock lock(&mutex_);
  progress_.steps_to_repeat = steps;
}

Progress ProgressReporter::Now() {
  const absl::Time now = SteadyNow();
  recent_.push_back({now, progress_.steps, progress_.samples});
  while (now - recent_.front().time > kRateWindow) recent_.pop_front();
  Progress progress = progress_;
  progress.seconds = absl::ToDoubleSeconds(now - phase_began_);
  const double window = absl::ToDoubleSeconds(now - recent_.front().time);
  const double steps_per_second =
      window > 0 ? static_cast<double>(progress.steps - recent_.front().steps) / window : 0;
  progress.samples_per_second =
      window > 0 ? static_cast<double>(progress.samples - recent_.front().samples) / window : -1;
  progress.eta_seconds =
      steps_per_second > 0 && progress.total_steps >= progress.steps
          ? static_cast<double>(progress.total_steps - progress.steps) / steps_per_second
          : -1;
  return progress;
}

void ProgressReporter::Run() {
  while (true) {
    RuntimeCounts stats;
    if (coordinator_ != nullptr) stats = coordinator_->Counts();
    Progress progress;
    {
      MutexLock lock(&mutex_);
      if (stopping_) return;
      progress = Now();
    }
    progress.workers_up = static_cast<int>(stats.workers_ready);
    progress.ps_up = static_cast<int>(stats.servers);
    callback_(progress);
    MutexLock lock(&mutex_);
    if (!stopping_) changed_.WaitFor(&mutex_, kInterval);
  }
}

}  // namespace mu
