#include "tests/sim/daemon.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/error_kind.h"
#include "tests/sim/cluster.h"

namespace mu::sim {
namespace {

constexpr Time kOrphanTimeout = 250 * kMillisecond;

}  // namespace

void Process::After(Time delay, const char* name, std::function<void()> run) {
  cluster_->Add(delay, {slot_, incarnation_, name, std::move(run)});
}

void Process::Saw(Moment moment) { cluster_->seen().Saw(moment); }
Time Process::now() const { return cluster_->now(); }

void Process::Handle(const Message& message) {
  message.kind == Kind::kReply ? OnReply(message) : HandleRequest(message);
}

uint32_t Process::CallAll(Messages requests, RetryPolicy policy, Done done) {
  const uint32_t id = cluster_->NextCall();
  policy.seed = id;
  const CallRetries retries(requests.size(), policy, now());
  calls_.push_back({id, requests[0].kind, retries, std::move(requests), std::move(done)});
  for (Message& request : calls_.back().messages) Try(&request, calls_.back().retries);
  return id;
}

void Process::Try(Message* request, const CallRetries& retries) {
  request->from = slot_;
  request->call = cluster_->NextCall();
  cluster_->Send(*request);
  After(absl::ToInt64Nanoseconds(retries.TryTimeout(now())), "", [this, call = request->call] {
    OnReply({.status = absl::DeadlineExceededError("no answer"), .call = call});
  });
}

void Process::Retry(std::list<Calls>::iterator calls) {
  After(calls->retries.next_due_ns() - now(), "retry", [this, id = calls->id] {
    const auto due = std::find_if(calls_.begin(), calls_.end(),
                                  [id](const Calls& other) { return other.id == id; });
    if (due == calls_.end()) return;
    while (const auto call = due->retries.TakeDue(now())) Try(&due->messages[*call], due->retries);
    if (due->retries.next_due_ns() < CallRetries::kNever) Retry(due);
  });
}

void Process::OnReply(const Message& reply) {
  for (auto calls = calls_.begin(); calls != calls_.end(); ++calls) {
    for (size_t i = 0; i < calls->messages.size(); ++i) {
      if (calls->messages[i].call == reply.call) return OnAnswer(calls, i, reply);
    }
  }
}

void Process::OnAnswer(std::list<Calls>::iterator calls, size_t call, const Message& reply) {
  Message& message = calls->messages[call];
  if (reply.status.ok()) message = reply;
  message.call = 0;
  if (reply.status.ok()) {
    calls->retries.Succeeded();
    if (calls->retries.done()) End(calls, absl::OkStatus());
    return;
  }
  switch (calls->retries.Failed(call, reply.status, now())) {
    case CallRetries::Verdict::kRetry:
      return Retry(calls);
    case CallRetries::Verdict::kFinal:
      return End(calls, reply.status);
    case CallRetries::Verdict::kGivenUp:
      const pb::Role role = IsWorkerSlot(message.to) ? pb::ROLE_WORKER : pb::ROLE_PSSERVER;
      const auto given_up = absl::StrCat("given up: ", reply.status.message());
      return End(calls, WithKind(absl::UnavailableError(given_up), pb::ERROR_MACHINE, role,
                                 static_cast<uint32_t>(call)));
  }
}

void Process::End(std::list<Calls>::iterator calls, const absl::Status& status) {
  std::list<Calls> ended;
  ended.splice(ended.begin(), calls_, calls);
  ended.front().done(status, ended.front().messages);
}

Daemon::Daemon(Cluster* cluster, Slot slot, uint64_t incarnation)
    : Process(cluster, slot, incarnation),
      index_(IndexOf(slot)),
      core_(absl::Nanoseconds(kOrphanTimeout)) {}

void Daemon::Call(Kind kind, Done done) {
  Message call{.kind = kind,
               .to = cluster_->coordinator_slot(),
               .index = index_,
               .epoch = static_cast<uint32_t>(core_.registration().epoch())};
  FillHeartbeat(&call);
  CallAll({std::move(call)}, kOnce, std::move(done));
}

void Daemon::CallCoordinator() {
  const bool registers = core_.Send(now()) == MembershipCore::Call::kRegister;
  const Kind called = registers ? Kind::kRegister : Kind::kHeartbeat;
  calling_ = true;
  Call(called, [this, called](const absl::Status& status, const Messages& answers) {
    calling_ = false;
    OnAnswer(called, status, answers[0]);
  });
}

void Daemon::CallLeave() {
  Call(Kind::kLeave, [this](const absl::Status& status, const Messages&) {
    if (status.ok()) cluster_->Exit(slot_);
  });
}

void Daemon::Tick() {
  After(kHeartbeatEvery, "", [this] { Tick(); });
  if (leaving_) CallLeave();
  if (!calling_ && core_.lost().ok()) CallCoordinator();
}

void Daemon::Leave() {
  if (core_.registration().job() == 0) return cluster_->Exit(slot_);  // nobody knows it
  leaving_ = true;
  core_.Leave();
  CallLeave();
}

void Daemon::OnAnswer(Kind called, const absl::Status& status, const Message& answer) {
  pb::RegisterReply registered;
  registered.set_job(kJob);
  registered.set_epoch(answer.epoch);
  registered.set_index(answer.index);
  absl::StatusOr<pb::RegisterReply> registration = registered;
  if (!status.ok()) registration = status;
  switch (called == Kind::kHeartbeat ? core_.Beaten(now(), status)
                                     : core_.Registered(now(), registration)) {
    case MembershipCore::Next::kTaken:
      return OnMember(answer, core_.sent_ns());
    case MembershipCore::Next::kWait:
      return;
    case MembershipCore::Next::kAtOnce:
      return CallCoordinator();
    case MembershipCore::Next::kLost:
      Saw(absl::IsUnavailable(core_.lost()) ? Moment("daemon orphaned") : Moment("daemon refused"));
      return cluster_->Exit(slot_);
  }
}

const pb::RequestContext& Daemon::Context(const Message& request) {
  context_.set_job(request.job);
  context_.set_epoch(request.epoch);
  context_.set_generation(request.generation);
  context_.set_low_water(request.low_water);
  return context_;
}

}  // namespace mu::sim
