// The runtime's beginning and end, what everything else needs (the context of calls, fatal errors),
// and the monitor. Scheduling is in runtime_schedule.cc, cancelling in runtime_cancel.cc, runs on
// workers in runtime_runs.cc, membership in runtime_members.cc, installation in runtime_install.cc,
// servers' recovery in runtime_recovery.cc, assignments in runtime_assign.cc, leases of data in
// runtime_data.cc, checkpoints in runtime_checkpoint.cc, pauses for want of memory in
// runtime_pause.cc.
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
      membership_({options_.servers, options_.heartbeat, options_.timeout}),
      queue_(
          options_.in_flight,
          [this](uint64_t dataset, WorkerId worker, uint32_t steps)
              ABSL_NO_THREAD_SAFETY_ANALYSIS {  // called under Dispatch's lock
                return TakeBatches(dataset, worker, steps);
              },
          options_.backup),
      spans_(options_.telemetry) {}

absl::StatusOr<std::unique_ptr<Runtime>> Runtime::Start(Options options) {
  std::unique_ptr<Runtime> runtime(new Runtime(std::move(options)));
  MU_ASSIGN_OR_RETURN(runtime->server_, runtime->options_.transport->Listen(
                                            runtime->options_.listen, runtime->Methods()));
  runtime->monitor_ = std::thread([r = runtime.get()] { r->Monitor(); });
  runtime->canceller_ = std::thread([r = runtime.get()] { r->Canceller(); });
  runtime->recoverer_ = std::thread([r = runtime.get()] { r->Recoverer(); });
  return runtime;
}

void Runtime::Close() {
  MutexLock lock(&mutex_);
  stopping_ = true;
  for (FunctionId id : queue_.CancelAll()) {
    FinishFunction(id, absl::CancelledError("the coordinator is being destroyed"));
  }
  for (auto& [id, link] : links_) {
    link->gone = true;
    for (auto& [run, call] : link->runs) call->Cancel();
    if (link->install_call != nullptr) link->install_call->Cancel();
    if (link->cancel_call != nullptr) link->cancel_call->Cancel();
    old_links_.push_back(link);
  }
  links_.clear();
  if (interrupt_ != nullptr) interrupt_();
  for (auto& [server, calls] : leaving_) {
    for (const auto& call : calls)
      call->Finish(absl::OkStatus(), Buffer(pb::LeaveReply().SerializeAsString()));
  }
  leaving_.clear();
  changed_.SignalAll();
}

Runtime::~Runtime() { Stop(); }

void Runtime::Stop() {
  Close();
  if (monitor_.joinable()) monitor_.join();
  if (canceller_.joinable()) canceller_.join();
  if (recoverer_.joinable()) recoverer_.join();
  if (server_ != nullptr) server_->Shutdown();
  std::vector<std::shared_ptr<WorkerLink>> links;
  {
    MutexLock lock(&mutex_);
    links.swap(old_links_);
    while (streams_ > 0) changed_.Wait(&mutex_);
  }
  for (auto& link : links) {
    if (link->installer.joinable()) link->installer.join();
  }
}

double Runtime::SecondsUp() const { return absl::ToDoubleSeconds(SteadyNow() - started_); }

std::string Runtime::NameOf(Fingerprint function) const {
  const InstalledFunction* const installed = catalog_.FindFunction(function);
  return installed == nullptr ? "" : installed->proto.name();
}

pb::RequestContext Runtime::ContextLocked() const {
  pb::RequestContext context;
  context.set_job(options_.job.value());
  context.set_epoch(options_.epoch.value());
  context.set_generation(catalog_.routing().generation());
  context.set_low_water(queue_.low_water().value());
  return context;
}

pb::RequestContext Runtime::Context() const {
  MutexLock lock(&mutex_);
  return ContextLocked();
}

void Runtime::Fail(absl::Status error) {
  MutexLock lock(&mutex_);
  FailLocked(std::move(error));
}

absl::Status Runtime::EndedLocked() const {
  if (stopping_) return absl::CancelledError("the coordinator is being destroyed");
  return fatal_;
}

absl::Status Runtime::ended() const {
  MutexLock lock(&mutex_);
  return EndedLocked();
}

void Runtime::FailLocked(absl::Status error) {
  if (!fatal_.ok() || stopping_) return;
  MU_LOG(ERROR, "{}", error);
  fatal_ = error;
  if (interrupt_ != nullptr) interrupt_();  // of a load, which may take long
  for (FunctionId id : queue_.CancelAll()) FinishFunction(id, error);
  changed_.SignalAll();
}

void Runtime::Monitor() {
  while (true) {
    uint64_t newer = options_.newest_epoch != nullptr ? options_.newest_epoch() : 0;
    std::vector<std::shared_ptr<WorkerLink>> ended;
    std::vector<Member> silent;
    std::function<void(const Member&)> on_silent;
    {
      MutexLock lock(&mutex_);
      if (!stopping_) changed_.WaitFor(&mutex_, options_.heartbeat);
      if (stopping_) return;
      silent = membership_.Expire(SteadyNow());
      on_silent = on_silent_;
      for (const Member& member : silent) {
        MemberLost(member, "silent",
                   absl::StrCat("no heartbeat for ", absl::FormatDuration(options_.timeout)));
      }
      StartBackups();
      Dispatch();
      newer = std::max(newer, newer_epoch_);
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
    if (newer > options_.epoch.value()) Superseded(newer);
  }
}

}  // namespace mu
