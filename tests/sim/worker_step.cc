// The running step of a simulated worker: it pulls from all servers, computes, and pushes to them.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/error_kind.h"
#include "tests/sim/cluster.h"
#include "tests/sim/worker.h"

namespace mu::sim {
namespace {

constexpr Time kCallTimeoutOfServers = 30 * kMillisecond;
constexpr Time kGiveUpAfter = 300 * kMillisecond;

const absl::Status& Interrupted() {
  static const absl::Status status = absl::CancelledError("the step was cancelled");
  return status;
}

const absl::Status& GivenUp() {
  static const absl::Status status =
      WithKind(absl::UnavailableError("simulated"), pb::ERROR_MACHINE, pb::ROLE_PSSERVER);
  return status;
}

const absl::Status& Stale() {
  static const absl::Status status =
      WithKind(absl::FailedPreconditionError("simulated"), pb::ERROR_STALE, pb::ROLE_PSSERVER);
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
    if (push) cluster_->seen().Saw(WorkerMoment::kPushNotBegun);
    return StepEnded(context.status());
  }
  calls_ = {.under_way = true,
            .push = push,
            .id = cluster_->NextCall(),
            .gives_up = cluster_->now() + kGiveUpAfter,
            .retry_delay = 5 * kMillisecond,
            .context = *context,
            .routing = routing_};
  for (uint8_t s = 0; s < calls_.routing.servers; ++s) CallServer(s);
  cluster_->SetTimer(slot_, kCallTimeoutOfServers, {.kind = Kind::kRetry, .call = calls_.id});
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
}

void Worker::OnServerReply(const Message& reply) {
  const uint8_t server = reply.server;
  if (!calls_.under_way || calls_.interrupted || calls_.open[server] != reply.call) return;
  if (reply.code == Code::kMachine) return;  // the timer tries again
  if (reply.code != Code::kOk) return ServersAnswered(Stale());
  calls_.open[server] = 0;
  calls_.repeated &= reply.repeated;
  calls_.updates[server] = reply.step_updates[server];
  calls_.inherited[server] = reply.step_inherited[server];
  if (std::all_of(calls_.open.begin(), calls_.open.end(), [](uint32_t call) { return call == 0; }))
    ServersAnswered(absl::OkStatus());
}

void Worker::Do(const worker_action::InterruptCall&) {
  if (!calls_.under_way || calls_.interrupted) return;
  calls_.interrupted = true;
  // The thread that waits for the servers notices in a moment.
  cluster_->SetTimer(slot_, cluster_->Between(0, 200 * kMicrosecond),
                     {.kind = Kind::kInterrupted, .call = calls_.id});
}

void Worker::OnServerTimer(const Message& timer) {
  if (!calls_.under_way || timer.call != calls_.id) return;
  if (calls_.interrupted) {
    if (timer.kind == Kind::kInterrupted) ServersAnswered(Interrupted());
    return;
  }
  if (cluster_->now() >= calls_.gives_up) {
    cluster_->seen().Saw(WorkerMoment::kCallGivenUp);
    return ServersAnswered(GivenUp());
  }
  for (uint8_t s = 0; s < calls_.routing.servers; ++s) {
    if (calls_.open[s] != 0) CallServer(s);
  }
  calls_.retry_delay = std::min(calls_.retry_delay * 2, 40 * kMillisecond);
  cluster_->SetTimer(slot_, kCallTimeoutOfServers + cluster_->Between(0, calls_.retry_delay),
                     {.kind = Kind::kRetry, .call = calls_.id});
}

void Worker::ServersAnswered(const absl::Status& status) {
  calls_.under_way = false;
  if (core_.RepeatCall(status)) {
    cluster_->seen().Saw(WorkerMoment::kCallRepeated);
    return CallServers(calls_.push);
  }
  if (!status.ok() || calls_.push) return StepEnded(status);
  pulled_ = static_cast<uint32_t>(calls_.context.generation.value());
  step_call_ = cluster_->NextCall();
  const Time slowness = cluster_->scenario().slow_worker == index_ ? 10 : 1;
  cluster_->SetTimer(slot_, slowness * cluster_->Between(kMillisecond / 2, 5 * kMillisecond),
                     {.kind = Kind::kComputed, .call = step_call_});
}

void Worker::StepEnded(const absl::Status& status) {
  if (status.ok()) {
    Message result{.kind = Kind::kStepResult, .step = static_cast<uint8_t>(step_)};
    result.repeated = calls_.repeated;
    result.step_updates = calls_.updates;
    result.step_inherited = calls_.inherited;
    held_.push_back(result);
  }
  WorkerActions actions;
  core_.StepEnded(Now(), status, &actions);
  Do(std::move(actions));
}

}  // namespace mu::sim
