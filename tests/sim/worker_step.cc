// The running step of a simulated worker: it pulls from all servers, computes, and pushes to them.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "tests/sim/cluster.h"
#include "tests/sim/worker.h"

namespace mu::sim {
namespace {

RetryPolicy Policy(uint64_t seed) {
  return {.call_timeout = absl::Nanoseconds(30 * kMillisecond),
          .total_timeout = absl::Nanoseconds(300 * kMillisecond),
          .first_backoff = absl::Nanoseconds(5 * kMillisecond),
          .longest_backoff = absl::Nanoseconds(40 * kMillisecond),
          .seed = seed};
}

const absl::Status& Interrupted() {
  static const absl::Status status = absl::CancelledError("the step was cancelled");
  return status;
}

}  // namespace

void Worker::Do(const worker_action::RunStep& a) {
  Open& open = Find(a.run);
  if (a.step != open.next_step) {
    return cluster_->truth().Fail(absl::StrCat("run ", open.request.run, " executes step ", a.step,
                                               ", but step ", open.next_step, " is its next"));
  }
  if (a.step == open.request.first_step) CheckBegin(open);
  ++open.next_step;
  running_ = a.run;
  step_ = a.step;
  pulled_ = 0;
  CallServers(/*push=*/false);
}

void Worker::CallServers(bool push) {
  const auto context = core_.BeginCall(push);
  if (!context.ok()) {
    if (push) Saw("push not begun");
    return StepEnded(context.status());
  }
  calls_.push = push;
  calls_.interrupted = false;
  calls_.repeated = true;
  calls_.id = cluster_->NextCall();
  calls_.context = *context;
  calls_.routing = routing_;
  calls_.open = {};
  calls_.updates = calls_.inherited = {};
  calls_.retries.emplace(routing_.servers, Policy(calls_.id), now());
  for (uint8_t s = 0; s < routing_.servers; ++s) CallServer(s);
}

void Worker::CallServer(uint8_t server) {
  const Message& run = Find(running_).request;
  calls_.open[server] = cluster_->NextCall();
  Message call{.kind = calls_.push ? Kind::kPush : Kind::kPull,
               .from = slot_,
               .to = calls_.routing.slot[server],
               .server = server,
               .step = static_cast<uint8_t>(step_),
               .call = calls_.open[server],
               .epoch = run.epoch,
               .generation = static_cast<uint32_t>(calls_.context.generation.value()),
               .pulled = pulled_,
               .low_water = calls_.context.low_water.value(),
               .function = run.function};
  call.records[0] = run.records[step_];
  cluster_->Send(call);
  const Time timeout = absl::ToInt64Nanoseconds(calls_.retries->TryTimeout(now()));
  After(timeout, "", [this, server, id = calls_.open[server]] {
    if (Calling(calls_.id) && calls_.open[server] == id)
      CallFailed(server, StatusOf(Code::kMachine));
  });
}

void Worker::OnServerReply(const Message& reply) {
  const uint8_t server = reply.server;
  if (!Calling(calls_.id) || calls_.open[server] != reply.call) return;
  if (reply.code != Code::kOk) return CallFailed(server, StatusOf(reply.code));
  calls_.open[server] = 0;
  calls_.repeated &= reply.repeated;
  calls_.updates[server] = reply.step_updates[server];
  calls_.inherited[server] = reply.step_inherited[server];
  calls_.retries->Succeeded();
  if (calls_.retries->done()) ServersAnswered(absl::OkStatus());
}

// Makes the calls again whose time has come, then.
void Worker::Retry() {
  After(calls_.retries->next_due_ns() - now(), "retry", [this, id = calls_.id] {
    if (!Calling(id)) return;
    while (const auto due = calls_.retries->TakeDue(now())) CallServer(static_cast<uint8_t>(*due));
    if (calls_.retries->next_due_ns() < CallRetries::kNever) Retry();
  });
}

void Worker::CallFailed(uint8_t server, const absl::Status& status) {
  calls_.open[server] = 0;
  switch (calls_.retries->Failed(server, status, now())) {
    case CallRetries::Verdict::kRetry:
      return Retry();
    case CallRetries::Verdict::kFinal:
      return ServersAnswered(status);
    case CallRetries::Verdict::kGivenUp:
      Saw("call given up");
      return ServersAnswered(StatusOf(Code::kServerGone));
  }
}

void Worker::Do(const worker_action::InterruptCall&) {
  if (!calls_.retries || calls_.interrupted) return;
  calls_.interrupted = true;
  // The thread that waits for the servers notices in a moment.
  After(cluster_->Between(0, 200 * kMicrosecond), "interrupted", [this, id = calls_.id] {
    if (calls_.retries && id == calls_.id) ServersAnswered(Interrupted());
  });
}

void Worker::ServersAnswered(const absl::Status& status) {
  calls_.retries.reset();
  if (core_.RepeatCall(status)) {
    Saw("call repeated");
    return CallServers(calls_.push);
  }
  if (!status.ok() || calls_.push) return StepEnded(status);
  pulled_ = static_cast<uint32_t>(calls_.context.generation.value());
  step_call_ = cluster_->NextCall();
  const Time slowness = cluster_->scenario().slow_worker == index_ ? 10 : 1;
  After(slowness * cluster_->Between(kMillisecond / 2, 5 * kMillisecond), "computed",
        [this, call = step_call_] {
          if (call == step_call_) CallServers(/*push=*/true);
        });
}

void Worker::StepEnded(const absl::Status& status) {
  if (status.ok()) {
    Message result{.kind = Kind::kStepResult, .step = static_cast<uint8_t>(step_)};
    result.repeated = calls_.repeated;
    result.step_updates = calls_.updates;
    result.step_inherited = calls_.inherited;
    held_.push_back(result);
  }
  core_.StepEnded(Now(), status, &actions_);
}

}  // namespace mu::sim
