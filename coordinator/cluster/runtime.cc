// The runtime's beginning and end, time, and what everything else needs (the context of calls,
// fatal errors). Actions are carried out in runtime_actions.cc; calls of daemons are in
// runtime_calls.cc, scheduling in runtime_schedule.cc, runs on workers in runtime_runs.cc,
// installation in runtime_install.cc, scans of files in runtime_scan.cc, what is said to servers in
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
      counters_(options_.telemetry),
      core_({.job = options_.job,
             .epoch = options_.epoch,
             .servers = options_.servers,
             .workers = options_.workers,
             .in_flight = options_.in_flight,
             .queue_bound = options_.queue_bound,
             .heartbeat = options_.heartbeat,
             .timeout = options_.timeout,
             .backup = options_.backup,
             .started = started_}),
      catalog_(options_.placement),
      next_beat_(started_ + options_.heartbeat),
      spans_(options_.telemetry) {}

absl::StatusOr<std::unique_ptr<Runtime>> Runtime::Start(Options options) {
  std::unique_ptr<Runtime> runtime(new Runtime(std::move(options)));
  Runtime* const r = runtime.get();
  r->fences_.Start();
  r->recovery_.Start();
  r->work_.Start();
  r->work_on_views_.Start();
  r->plans_.Start();
  r->silences_.Start();
  r->feed_writer_.Start();
  r->loop_.Start(
      [r] {
        r->loop_.AssertHeld();
        return r->Alarm();
      },
      [r] {
        r->loop_.AssertHeld();
        r->OnAlarm();
      });
  MU_ASSIGN_OR_RETURN(r->server_, r->options_.transport->Listen(r->options_.listen, r->Methods()));
  if (r->options_.newest_epoch != nullptr) {
    r->epochs_.Start(r->options_.newest_epoch, r->options_.heartbeat, [r](uint64_t newest) {
      r->PostStep(event::EpochSeen{CoordinatorEpoch(newest)});
    });
  }
  return runtime;
}

void Runtime::Step(Event event) {
  // Nobody waits for what follows these, of which there are many, unless more follows.
  const bool quiet = std::holds_alternative<event::Results>(event) ||
                     std::holds_alternative<event::Heartbeat>(event) ||
                     std::holds_alternative<event::EpochSeen>(event) ||
                     std::holds_alternative<event::Tick>(event);
  events_.push_back(std::move(event));
  bool more = !quiet;
  if (stepping_) return;  // an action has news: it is handled after the others
  stepping_ = true;
  while (!events_.empty()) {
    Actions actions;
    Event next = std::move(events_.front());
    events_.pop_front();
    core_.Step(SteadyNow(), std::move(next), &actions);
    more |= Execute(actions) || !events_.empty();
  }
  stepping_ = false;
  published_.Publish(CountsNow());
  if (more) loop_.LookAgain();
}

void Runtime::PostStep(Event event) {
  loop_.Post([this, event = std::move(event)] {
    loop_.AssertHeld();
    Step(event);
  });
}

void Runtime::Drop(const std::shared_ptr<WorkerLink>& link) {
  link->gone = true;
  if (link->feed != nullptr) link->feed->Close();
  for (const auto& [run, start] : std::exchange(link->runs, {}))
    PostEnd(start, absl::CancelledError("the worker is lost"));
  if (link->install_call != nullptr) link->install_call->Cancel();
  if (link->cancel_call != nullptr) link->cancel_call->Cancel();
}

void Runtime::Close(bool dismiss) {
  loop_.Ask([this, dismiss] {
    loop_.AssertHeld();
    Step(event::Close{dismiss});
    for (auto& [id, link] : links_) Drop(link);
    links_.clear();
  });
}

void Runtime::Dismiss() {
  Close(/*dismiss=*/true);
  (void)loop_.Await(
      [this] {
        loop_.AssertHeld();
        return core_.membership().All().empty();
      },
      SteadyNow() + options_.timeout);
}

Runtime::~Runtime() { Stop(); }

void Runtime::Stop() {
  Close();
  epochs_.Stop();
  fences_.Stop();
  recovery_.Stop();
  work_.Stop();
  work_on_views_.Stop();
  plans_.Stop();
  if (server_ != nullptr) server_->Shutdown();
  loop_.Await([this] {
    loop_.AssertHeld();
    return expected_.none();
  });
  silences_.Stop();
  feed_writer_.Stop();
  loop_.Stop();
}

pb::RequestContext Runtime::ContextNow() const {
  pb::RequestContext context;
  context.set_job(options_.job.value());
  context.set_epoch(options_.epoch.value());
  context.set_generation(catalog_.routing().generation());
  context.set_low_water(core_.low_water().value());
  return context;
}

pb::RequestContext Runtime::Context() const {
  return loop_.Ask([this] {
    loop_.AssertHeld();
    return ContextNow();
  });
}

pb::RoutingProto Runtime::Created() const {
  return loop_.Ask([this] {
    loop_.AssertHeld();
    return catalog_.created();
  });
}

void Runtime::Fail(absl::Status error) { PostStep(event::Fail{std::move(error)}); }

absl::Time Runtime::Alarm() const {
  return core_.closed() ? absl::InfiniteFuture() : std::min(next_beat_, core_.alarm());
}

void Runtime::OnAlarm() {
  const absl::Time now = SteadyNow();
  if (now >= next_beat_) next_beat_ = now + options_.heartbeat;
  Step(event::Tick{});
}

bool Runtime::IsSuperseded() {
  const CoordinatorEpoch newest(options_.newest_epoch != nullptr ? options_.newest_epoch() : 0);
  return loop_.Ask([&] {
    loop_.AssertHeld();
    Step(event::EpochSeen{newest});
    return core_.superseded();
  });
}

}  // namespace mu
