// The running step of a simulated worker: it pulls from all servers, computes, and pushes to them.
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/client/too_late.h"
#include "tests/sim/cluster.h"
#include "tests/sim/worker.h"

namespace mu::sim {
namespace {

constexpr RetryPolicy kServerCalls = {.call_timeout = absl::Nanoseconds(kServerCallTimeout),
                                      .total_timeout = absl::Nanoseconds(300 * kMillisecond),
                                      .first_backoff = absl::Nanoseconds(5 * kMillisecond),
                                      .longest_backoff = absl::Nanoseconds(40 * kMillisecond)};

}  // namespace

void Worker::Do(const worker_action::RunStep& a) {
  Open& open = open_.at(a.run);
  const bool again = std::exchange(again_, false) && a.run == running_ && a.step == step_;
  if (again) {
    Saw("step again");
    --open.next_step;
  }
  if (a.step != open.next_step) {
    return cluster_->truth().Fail(absl::StrCat("run ", open.request.run, " executes step ", a.step,
                                               ", but step ", open.next_step, " is its next"));
  }
  if (a.step == open.request.first_step) CheckBegin(open);
  ++open.next_step;
  running_ = a.run;
  step_ = a.step;
  pulled_ = 0;
  if (open.request.fails && a.step >= open.request.fails_at) {
    return After(cluster_->Between(0, kMillisecond), "fails",
                 [this, wrong = UserErrorOf(open.request)] { StepEnded(wrong); });
  }
  if (open.request.only_reads || open.request.records[a.step] == kNoRecord)
    return CallServers(/*push=*/false);
  if (const absl::Status blind = CannotSee(0); !blind.ok())
    return After(cluster_->Between(0, kMillisecond), "cannot read",
                 [=, this] { StepEnded(blind); });
  CallServers(/*push=*/false);
}

void Worker::CallServers(bool push) {
  const auto context = core_.BeginCall(push);
  if (!context.ok()) {
    if (push) Saw("push not begun");
    return StepEnded(context.status());
  }
  const Message& run = open_.at(running_).request;
  Message call{.kind = push ? Kind::kPush : Kind::kPull,
               .step = static_cast<uint8_t>(step_),
               .epoch = run.epoch,
               .generation = static_cast<uint32_t>(context->generation.value()),
               .pulled = pulled_,
               .round = run.round,
               .most = run.most,
               .low_water = context->low_water.value(),
               .function = run.function,
               .view = run.view,
               .place = run.place + step_};
  call.records[0] = run.records[step_];
  call.only_reads = run.only_reads;
  Messages calls(routing_.servers, call);
  for (uint8_t s = 0; s < routing_.servers; ++s) {
    calls[s].to = routing_.slot[s];
    if (!push || s >= read_.size()) continue;
    calls[s].clock = read_[s].clock;
    calls[s].applied = read_[s].applied;
    calls[s].version = read_[s].version;
  }
  server_calls_ = CallAll(std::move(calls), kServerCalls,
                          [this, push, generation = call.generation](const absl::Status& status,
                                                                     const Messages& answers) {
                            OnServersDone(push, generation, status, answers);
                          });
}

void Worker::Do(const worker_action::InterruptCall&) {
  // The thread that waits for the servers notices in a moment.
  After(cluster_->Between(0, 200 * kMicrosecond), "interrupted", [this, id = server_calls_] {
    Interrupt([id](const Calls& calls) { return calls.id == id; });
  });
}

void Worker::OnServersDone(bool push, uint32_t generation, const absl::Status& status,
                           const Messages& answers) {
  if (absl::IsUnavailable(status)) Saw("call given up");
  if (core_.RepeatCall(status)) {
    Saw("call repeated");
    return CallServers(push);
  }
  if (!status.ok()) {
    again_ = IsTooLate(status);
    return StepEnded(status);
  }
  if (push) {
    Message result{
        .kind = Kind::kStepResult, .step = static_cast<uint8_t>(step_), .repeated = true};
    result.records[0] = open_.at(running_).request.records[step_];
    for (size_t s = 0; s < answers.size(); ++s) {
      result.repeated &= answers[s].repeated;
      result.step_updates[s] = answers[s].step_updates[s];
      result.step_inherited[s] = answers[s].step_inherited[s];
    }
    held_.push_back(result);
    return StepEnded(absl::OkStatus());
  }
  pulled_ = generation;
  read_ = answers;
  const Scenario& scenario = cluster_->scenario();
  const Message& run = open_.at(running_).request;
  const int record = run.only_reads ? -2 : run.records[step_];
  const Time slowness =
      (scenario.slow_worker == index_ ? 10 : 1) * (scenario.slow_record == record ? 20 : 1);
  After(slowness * cluster_->Between(kMillisecond / 2, 5 * kMillisecond), "computed",
        [this] { Computed(); });
}

void Worker::Computed() {
  if (!open_.at(running_).request.only_reads) return CallServers(/*push=*/true);
  Message result{.kind = Kind::kStepResult, .step = static_cast<uint8_t>(step_)};
  for (const Message& answer : read_) result.updates += answer.updates;
  held_.push_back(result);
  StepEnded(absl::OkStatus());
}

}  // namespace mu::sim
