#include "coordinator/launch/chaos.h"

#include <signal.h>

#include <algorithm>

#include "common/base/steady_now.h"
#include "common/obs/log.h"

namespace mu {

namespace {

constexpr absl::Duration kLook = absl::Milliseconds(20);

}  // namespace

Chaos::Chaos(ChaosPlan plan, std::function<std::vector<Target>()> targets,
             std::function<bool(pid_t pid, int signal)> send)
    : targets_(std::move(targets)), send_(std::move(send)), begin_(SteadyNow()) {
  thread_ = std::thread([this, plan = std::move(plan)] { Run(plan); });
}

Chaos::~Chaos() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
    changed_.SignalAll();
  }
  thread_.join();
  for (const auto& [at, target] : hanging_) send_(target.pid, SIGCONT);
}

void Chaos::Run(ChaosPlan plan) {
  while (const auto event = plan.Next()) {
    if (!WaitUntil(begin_ + event->at)) return;
    // While none is up there is nothing to break; it counts when it has been done.
    while (!Do(*event)) {
      if (!WaitUntil(SteadyNow() + kLook)) return;
    }
  }
  WaitUntil(absl::InfiniteFuture());
}

bool Chaos::WaitUntil(absl::Time at) {
  while (true) {
    const absl::Time wake = hanging_.empty() ? at : std::min(at, hanging_.begin()->first);
    {
      MutexLock lock(&mutex_);
      while (!stopping_ && SteadyNow() < wake) changed_.WaitFor(&mutex_, wake - SteadyNow());
      if (stopping_) return false;
    }
    if (SteadyNow() >= at) return true;
    const Target target = hanging_.begin()->second;
    hanging_.erase(hanging_.begin());
    MU_LOG(INFO, "chaos: {} (pid {}) wakes up", target.name, target.pid);
    send_(target.pid, SIGCONT);
  }
}

bool Chaos::Do(const ChaosEvent& event) {
  std::vector<Target> candidates;
  for (Target& target : targets_()) {
    const bool hangs = std::any_of(hanging_.begin(), hanging_.end(), [&](const auto& other) {
      return other.second.pid == target.pid;
    });
    if (target.worker == event.worker && target.pid > 0 && !hangs)
      candidates.push_back(std::move(target));
  }
  if (candidates.empty()) return false;
  const Target& target = candidates[event.choice % candidates.size()];
  switch (event.action) {
    case ChaosEvent::kKill:
      if (!send_(target.pid, SIGKILL)) return false;
      MU_LOG(INFO, "chaos: kills {} (pid {})", target.name, target.pid);
      break;
    case ChaosEvent::kDrain:
      if (!send_(target.pid, SIGTERM)) return false;
      MU_LOG(INFO, "chaos: SIGTERM to {} (pid {})", target.name, target.pid);
      break;
    case ChaosEvent::kHang:
      if (!send_(target.pid, SIGSTOP)) return false;
      MU_LOG(INFO, "chaos: stops {} (pid {}) for {}", target.name, target.pid, event.duration);
      hanging_.emplace(SteadyNow() + event.duration, target);
      break;
  }
  return true;
}

}  // namespace mu
