// The runtime's beginning and end, the loop that brings time to the core, and what everything else
// needs (the context of calls, fatal errors). Actions are carried out in runtime_actions.cc; calls
// of daemons are in runtime_calls.cc, scheduling in runtime_schedule.cc, runs on workers in
// runtime_runs.cc, installation in runtime_install.cc, what is said to servers in
// runtime_servers.cc, checkpoints in runtime_checkpoint.cc.
#include "coordinator/cluster/runtime.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/steady_now.h"
#include "common/obs/log.h"

namespace mu {

Runtime::Runtime(Options options)
    : options_(std::move(options)),
      started_(SteadyNow()),
      core_({.job = options_.job,
             .epoch = options_.epoch,
             .servers = options_.servers,
             .in_flight = options_.in_flight,
             .heartbeat = options_.heartbeat,
             .timeout = options_.timeout,
             .backup = options_.backup,
             .started = started_}),
      spans_(options_.telemetry) {}

absl::StatusOr<std::unique_ptr<Runtime>> Runtime::Start(Options options) {
  std::unique_ptr<Runtime> runtime(new Runtime(std::move(options)));
  MU_ASSIGN_OR_RETURN(runtime->server_, runtime->options_.transport->Listen(
                                            runtime->options_.listen, runtime->Methods()));
  runtime->monitor_ = std::thread([r = runtime.get()] { r->Monitor(); });
  if (runtime->options_.newest_epoch != nullptr)
    runtime->epochs_ = std::thread([r = runtime.get()] { r->WatchEpochs(); });
  runtime->fences_.Start();
  runtime->recovery_.Start();
  return runtime;
}

void Runtime::Step(Event event) {
  // All who wait wake up together, so not for these, of which there are many, unless more follows.
  const bool quiet = std::holds_alternative<event::Results>(event) ||
                     std::holds_alternative<event::Heartbeat>(event) ||
                     std::holds_alternative<event::Tick>(event);
  Actions actions;
  core_.Step(SteadyNow(), std::move(event), &actions);
  if (Execute(actions) || !quiet) changed_.SignalAll();
}

void Runtime::Drop(const std::shared_ptr<WorkerLink>& link) {
  link->gone = true;
  for (auto& [run, call] : link->runs) call->Cancel();
  if (link->install_call != nullptr) link->install_call->Cancel();
  if (link->cancel_call != nullptr) link->cancel_call->Cancel();
  old_links_.push_back(link);
}

void Runtime::Close() {
  MutexLock lock(&mutex_);
  Step(event::Close{});
  for (auto& [id, link] : links_) Drop(link);
  links_.clear();
}

Runtime::~Runtime() { Stop(); }

void Runtime::Stop() {
  Close();
  if (monitor_.joinable()) monitor_.join();
  if (epochs_.joinable()) epochs_.join();
  fences_.Stop();
  recovery_.Stop();
  if (server_ != nullptr) server_->Shutdown();
  std::vector<std::shared_ptr<WorkerLink>> links;
  {
    MutexLock lock(&mutex_);
    links.swap(old_links_);
    while (callbacks_ > 0) changed_.Wait(&mutex_);
  }
  for (auto& link : links) {
    if (link->installer.joinable()) link->installer.join();
  }
}

double Runtime::SecondsUp() const { return absl::ToDoubleSeconds(SteadyNow() - started_); }

pb::RequestContext Runtime::ContextLocked() const {
  pb::RequestContext context;
  context.set_job(options_.job.value());
  context.set_epoch(options_.epoch.value());
  context.set_generation(catalog_.routing().generation());
  context.set_low_water(core_.low_water().value());
  return context;
}

pb::RequestContext Runtime::Context() const {
  MutexLock lock(&mutex_);
  return ContextLocked();
}

void Runtime::Fail(absl::Status error) {
  MutexLock lock(&mutex_);
  Step(event::Fail{std::move(error)});
}

absl::Status Runtime::EndedLocked() const {
  if (core_.closed()) return absl::CancelledError("the coordinator is being destroyed");
  return core_.ended();
}

absl::Status Runtime::ended() const {
  MutexLock lock(&mutex_);
  return EndedLocked();
}

void Runtime::Monitor() {
  absl::Time beat = SteadyNow() + options_.heartbeat;
  while (true) {
    std::vector<std::shared_ptr<WorkerLink>> ended;
    std::vector<Member> silent;
    std::function<void(const Member&)> on_silent;
    {
      MutexLock lock(&mutex_);
      while (!core_.closed()) {
        const absl::Duration left = std::min(beat, core_.alarm()) - SteadyNow();
        if (left <= absl::ZeroDuration()) break;
        changed_.WaitFor(&mutex_, left);
      }
      if (core_.closed()) return;
      const absl::Time now = SteadyNow();
      if (now >= beat) beat = now + options_.heartbeat;
      Step(event::Tick{});
      silent.swap(silent_);
      on_silent = on_silent_;
      for (auto it = old_links_.begin(); it != old_links_.end();) {
        if ((*it)->installer_ended) {
          ended.push_back(*it);
          it = old_links_.erase(it);
        } else {
          ++it;
        }
      }
    }
    for (auto& link : ended) link->installer.join();
    if (on_silent != nullptr) {
      for (const Member& member : silent) on_silent(member);
    }
  }
}

void Runtime::WatchEpochs() {
  while (true) {
    const CoordinatorEpoch newest(options_.newest_epoch());
    MutexLock lock(&mutex_);
    if (newest > options_.epoch) Step(event::EpochSeen{newest});
    const absl::Time until = SteadyNow() + options_.heartbeat;
    while (!core_.closed() && SteadyNow() < until) changed_.WaitFor(&mutex_, until - SteadyNow());
    if (core_.closed()) return;
  }
}

bool Runtime::IsSuperseded() {
  const CoordinatorEpoch newest(options_.newest_epoch != nullptr ? options_.newest_epoch() : 0);
  MutexLock lock(&mutex_);
  return std::max(newest, core_.newest_epoch()) > options_.epoch;
}

}  // namespace mu
