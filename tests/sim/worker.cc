#include "tests/sim/worker.h"

#include <algorithm>

#include "tests/sim/cluster.h"

namespace mu::sim {
namespace {

constexpr Time kPushTimeout = 30 * kMillisecond;
constexpr Time kGiveUpAfter = 300 * kMillisecond;

}  // namespace

void Worker::Handle(const Message& message) {
  Time sent = 0;
  switch (message.kind) {
    case Kind::kTick:
      return daemon_.Tick();
    case Kind::kReply:
      if (message.request == Kind::kPush) return OnPushReply(message);
      if (daemon_.OnReply(message, &sent) && message.request == Kind::kRegister) {
        Message registered = message;
        registered.copy = true;  // nobody waits for an answer
        Admit(registered);
      }
      return;
    case Kind::kInstall:
      return Install(message);
    case Kind::kRun:
      return AddRun(message);
    case Kind::kCancelRun:
      return CancelRun(message);
    case Kind::kCancelBelow:
      return CancelBelow(message);
    case Kind::kComputed:
      if (message.call == step_call_ && !pushing_) PushAll();
      return;
    case Kind::kRetry:
      return OnPushTimer(message);
    default:
      return;
  }
}

bool Worker::Admit(const Message& message) {
  context_.set_job(kJob);
  const uint64_t known = gate_.epoch();
  context_.set_epoch(cluster_->scenario().broken.fencing ? std::max<uint64_t>(known, message.epoch)
                                                         : message.epoch);
  context_.set_low_water(message.low_water);
  const auto verdict = gate_.Admit(context_);
  if (!verdict.ok()) {
    if (message.kind == Kind::kRun) {
      SendToCaller(message, {.kind = Kind::kRunEnded, .code = Code::kStale});
    } else {
      cluster_->Reply(message, {.code = Code::kStale});
    }
    return false;
  }
  if (*verdict == RequestGate::Verdict::kNewEpoch) {
    StopAll(Code::kStale);
    configured_ = false;
    routing_version_ = 0;
    routing_.generation = 0;
    cancelled_below_ = 0;
  }
  return true;
}

void Worker::Install(const Message& message) {
  if (!Admit(message)) return;
  if (!configured_ || message.routing > routing_version_) {
    const Routing& routing = cluster_->RoutingAt(message.routing_place);
    const bool moved = configured_ && (routing.slot != routing_.slot ||
                                       routing.incarnation != routing_.incarnation);
    if (routing.generation > routing_.generation) cancelled_below_ = 0;
    routing_ = routing;
    routing_version_ = message.routing;
    configured_ = true;
    // Calls to the old places are given up; the step is tried again at the new ones.
    for (uint8_t s = 0; moved && pushing_ && s < routing_.servers; ++s) {
      if (push_call_[s] != 0) PushTo(s);
    }
  }
  cluster_->Reply(message, {.routing = message.routing});
}

void Worker::SendToCaller(const Message& request, Message message) {
  if (request.copy) return;  // the caller knows nothing of the second one
  message.from = slot_;
  message.to = request.from;
  message.to_incarnation = request.from_incarnation;
  message.function = request.function;
  message.run = request.run;
  cluster_->Send(message);
}

void Worker::AddRun(const Message& message) {
  if (!Admit(message)) return;
  const auto refuse = [&](Code code) {
    SendToCaller(message, {.kind = Kind::kRunEnded, .code = code});
  };
  if (!configured_ || message.generation > routing_.generation) return refuse(Code::kNotInstalled);
  if (message.generation < routing_.generation && !cluster_->scenario().broken.fencing)
    return refuse(Code::kStale);
  if (message.function < cancelled_below_) return refuse(Code::kMachine);
  if (draining_) return refuse(Code::kHandedBack);
  runs_.push_back({message, message.first_step});
  if (runs_.size() == 1) NextStep();
}

void Worker::CancelRun(const Message& message) {
  for (size_t i = 0; i < runs_.size(); ++i) {
    RunState& run = runs_[i];
    if (run.request.run != message.run || run.request.from_incarnation != message.from_incarnation)
      continue;
    run.stopped = true;
    run.why = Code::kMachine;
    if (i > 0) {
      runs_.erase(runs_.begin() + static_cast<std::ptrdiff_t>(i));
      --i;
    }
  }
}

void Worker::CancelBelow(const Message& message) {
  if (!Admit(message)) return;
  // What has these ids in a newer generation are repeats.
  if (message.generation < routing_.generation) return cluster_->Reply(message, {});
  cancelled_below_ = std::max(cancelled_below_, message.function);
  for (size_t i = runs_.size(); i-- > 0;) {
    if (runs_[i].request.function >= message.function) continue;
    runs_[i].stopped = true;
    runs_[i].why = Code::kMachine;
    if (i == 0) continue;
    SendToCaller(runs_[i].request, {.kind = Kind::kRunEnded, .code = Code::kMachine});
    runs_.erase(runs_.begin() + static_cast<std::ptrdiff_t>(i));
  }
  cluster_->Reply(message, {});
}

void Worker::StopAll(Code why) {
  while (runs_.size() > 1) {
    SendToCaller(runs_.back().request, {.kind = Kind::kRunEnded, .code = why});
    runs_.pop_back();
  }
  if (runs_.empty() || runs_.front().stopped) return;
  runs_.front().stopped = true;
  runs_.front().why = why;
}

void Worker::Forget() {
  cluster_->Trace(slot_, "forgets what was installed");
  configured_ = false;
  routing_version_ = 0;
}

void Worker::Drain() {
  draining_ = true;
  StopAll(Code::kHandedBack);
  if (runs_.empty()) daemon_.Leave();
}

void Worker::NextStep() {
  while (!runs_.empty()) {
    RunState& run = runs_.front();
    step_call_ = cluster_->NextCall();
    if (run.stopped) {
      EndRun(run.why);
      continue;
    }
    if (run.next >= run.request.steps) {
      EndRun(Code::kOk);
      continue;
    }
    generation_ = run.request.generation;
    const Time slowness = cluster_->scenario().slow_worker == index_ ? 10 : 1;
    cluster_->SetTimer(slot_, slowness * cluster_->Between(kMillisecond, 6 * kMillisecond),
                       {.kind = Kind::kComputed, .call = step_call_});
    return;
  }
  if (draining_ && !left_) {
    left_ = true;
    daemon_.Leave();
  }
}

void Worker::EndRun(Code code) {
  SendToCaller(runs_.front().request, {.kind = Kind::kRunEnded, .code = code});
  runs_.pop_front();
}

void Worker::PushAll() {
  if (runs_.front().stopped)
    return NextStep();  // what it waits for is aborted before it has pushed
  pushing_ = true;
  updates_ = inherited_ = {};
  gives_up_ = cluster_->now() + kGiveUpAfter;
  retry_delay_ = 5 * kMillisecond;
  for (uint8_t s = 0; s < routing_.servers; ++s) PushTo(s);
  for (uint8_t s = routing_.servers; s < kMaxServers; ++s) push_call_[s] = 0;
  cluster_->SetTimer(slot_, kPushTimeout, {.kind = Kind::kRetry, .call = step_call_});
}

void Worker::PushTo(uint8_t server) {
  const RunState& run = runs_.front();
  push_call_[server] = cluster_->NextCall();
  Message push{.kind = Kind::kPush,
               .from = slot_,
               .to = routing_.slot[server],
               .server = server,
               .step = run.next,
               .call = push_call_[server],
               .epoch = run.request.epoch,
               .generation = generation_,
               .low_water = gate_.low_water(),
               .function = run.request.function};
  push.records[0] = run.request.records[run.next];
  cluster_->Send(push);
}

void Worker::OnPushReply(const Message& reply) {
  if (!pushing_) return;
  const uint8_t server = reply.server;
  if (push_call_[server] != reply.call) return;
  if (reply.code == Code::kMachine) return;  // the timer tries again
  if (reply.code != Code::kOk) {
    pushing_ = false;
    EndRun(reply.code);
    return NextStep();
  }
  push_call_[server] = 0;
  updates_[server] = reply.step_updates[server];
  inherited_[server] = reply.step_inherited[server];
  if (std::any_of(push_call_.begin(), push_call_.end(), [](uint32_t call) { return call != 0; }))
    return;
  pushing_ = false;
  RunState& run = runs_.front();
  Message result{.kind = Kind::kStepResult, .step = run.next};
  result.step_updates = updates_;
  result.step_inherited = inherited_;
  SendToCaller(run.request, result);
  ++run.next;
  NextStep();
}

void Worker::OnPushTimer(const Message& timer) {
  if (!pushing_ || timer.call != step_call_) return;
  if (cluster_->now() >= gives_up_) {
    pushing_ = false;
    EndRun(Code::kServerGone);
    return NextStep();
  }
  for (uint8_t s = 0; s < routing_.servers; ++s) {
    if (push_call_[s] != 0) PushTo(s);
  }
  retry_delay_ = std::min(retry_delay_ * 2, 40 * kMillisecond);
  cluster_->SetTimer(slot_, kPushTimeout + cluster_->Between(0, retry_delay_),
                     {.kind = Kind::kRetry, .call = step_call_});
}

}  // namespace mu::sim
