// Pushes and assignments: once each, in a cut or after it as a whole.
#include <algorithm>
#include <limits>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/base/status.h"
#include "common/client/too_late.h"
#include "common/rpc/frame.h"
#include "psserver/assignment.h"
#include "psserver/push.h"
#include "psserver/push_staleness.h"
#include "psserver/server.h"

namespace mu {

void PsServer::Push(const Buffer& frame, PushDone done, std::function<bool()> abandoned) {
  const auto request = std::make_shared<pb::PushRequest>();
  const auto payload = ParseFrame(frame, request.get());
  if (!payload.ok()) return done(Detailed(payload.status()));
  const bool waits = request->round() == 0 && !copies_.HasRoom();
  if (!waits && !HasProducts(*request)) return TakePush(frame, *request, *payload, done);
  auto take = [this, frame, request, payload = *payload, done, abandoned] {
    if (!HasProducts(*request)) return TakePush(frame, *request, payload, done);
    Compute([=, this] {
      // It was sent again, and that one is behind it.
      if (abandoned != nullptr && abandoned())
        return done(absl::CancelledError("nobody waits for the push"));
      TakePush(frame, *request, payload, done);
    });
  };
  if (!waits) return take();
  // A thread of the transport must not wait, nor one that computes for others.
  waiting_.Post(
      [this, take = std::move(take), done = std::move(done), abandoned = std::move(abandoned)] {
        // A disk may be slow for minutes: a push that is sent again and again must not pile up
        // here.
        if (!WaitForCopies(abandoned))
          return done(absl::CancelledError("nobody waits for the push"));
        take();
      });
}

void PsServer::TakePush(const Buffer& frame, const pb::PushRequest& request,
                        absl::Span<const char> payload, const PushDone& done) {
  if (request.round() != 0) return Contribute(frame, request, payload, done);
  PushNow(request, payload, done);
}

bool PsServer::WaitForCopies(const std::function<bool()>& abandoned) {
  ScopedTimer timing(push_wait_timer_);
  if (copies_.WaitForRoom(options_.most_wait, abandoned)) return true;
  if (abandoned != nullptr && abandoned()) return false;
  std::shared_ptr<SaveReading> reading;
  {
    MutexLock lock(&mutex_);
    core_.CancelSave(absl::StrCat("nothing was written for ",
                                  absl::FormatDuration(options_.most_wait),
                                  ", while copies of what changes take all of their memory"));
    reading = reading_;
  }
  // Lets the copies go, even if the writer hangs in the disk.
  if (reading != nullptr) reading->End();
  (void)copies_.WaitForRoom(options_.most_wait);
  return true;
}

void PsServer::PushNow(const pb::PushRequest& request, absl::Span<const char> payload,
                       const PushDone& done) {
  ScopedTimer timing(push_timer_);
  const PushId id{request.function(), request.step(), request.part()};
  const auto for_each = [&](PushPartitions::Visit visit) { VisitPartitions(request, visit); };
  const PushPartitions partitions{CountPartitions(request), for_each};
  PushStaleness staleness = StalenessOf(request);
  PushBegun begun;
  {
    MutexLock lock(&mutex_);
    const PsCallId call(++last_call_);
    begun = core_.BeginPush(Now(), request.context(), id, partitions, call, std::move(staleness));
    if (begun.step == PushBegun::Step::kWait) waiting_calls_.emplace(call, done);
  }
  std::shared_ptr<const StoreDirectory> directory;
  std::optional<PushPlan> plan;
  const AdmittedPush push = begun.push;
  Carry(
      std::move(begun),
      [&]() -> absl::Status {
        directory = store_.directory();
        absl::StatusOr<PushPlan> checked = PushPlan::Check(*directory, request, payload, &compute_);
        if (!checked.ok()) return Detailed(checked.status(), request.step());
        plan.emplace(*std::move(checked));
        plan->Skip(push);
        return absl::OkStatus();
      },
      [&](const AdmittedPush& entered) {
        options_.at("push");
        plan->Discount(entered, request.staleness().discount());
        plan->Apply();
        applied_.fetch_add(1, std::memory_order_relaxed);
      },
      done);
}

void PsServer::Carry(PushBegun begun, absl::FunctionRef<absl::Status()> check,
                     absl::FunctionRef<void(const AdmittedPush&)> apply, const PushDone& done) {
  if (begun.step == PushBegun::Step::kWait) return;
  if (begun.step == PushBegun::Step::kAnswer) return done(ReplyOf(begun.answer));
  absl::Status status = check();
  if (status.ok()) status = Change(&begun.push, apply);
  PushEnded ended;
  std::vector<PushDone> waiting;
  {
    MutexLock lock(&mutex_);
    ended = core_.EndPush(Now(), begun.push, status);
    waiting = TakeWaiting(ended);
    changed_.SignalAll();
  }
  Answer(ended, waiting, done);
}

std::vector<PsServer::PushDone> PsServer::TakeWaiting(const PushEnded& ended) {
  std::vector<PushDone> waiting;
  for (const auto& [call, answer] : ended.waiting) {
    const auto it = waiting_calls_.find(call);
    waiting.push_back(std::move(it->second));
    waiting_calls_.erase(it);
  }
  return waiting;
}

void PsServer::Answer(const PushEnded& ended, const std::vector<PushDone>& waiting,
                      const PushDone& done) {
  for (size_t i = 0; i < waiting.size(); ++i) waiting[i](ReplyOf(ended.waiting[i].second));
  done(ReplyOf(ended.answer));
}

absl::Status PsServer::Change(AdmittedPush* push,
                              absl::FunctionRef<void(const AdmittedPush&)> apply) {
  PushEntered entered;
  {
    MutexLock lock(&mutex_);
    while ((entered = core_.Enter(Now(), push)).step == PushEntered::Step::kWait)
      opened_.Wait(&mutex_);
  }
  if (entered.step == PushEntered::Step::kApply) apply(*push);
  return entered.status;
}

absl::StatusOr<pb::PushReply> PsServer::ReplyOf(const PushAnswer& answer) {
  if (IsTooLate(answer.status)) too_late_counter_->Add();
  if (!answer.status.ok()) return answer.status;
  pb::PushReply reply;
  if (answer.late.has_value()) {
    reply.set_late(static_cast<uint32_t>(
        std::min<uint64_t>(*answer.late, std::numeric_limits<uint32_t>::max())));
    judged_counter_->Add();
    late_counter_->Add(static_cast<int64_t>(*answer.late));
  }
  reply.set_repeated(answer.repeated);
  reply.set_updates(answer.counts.updates);
  reply.set_inherited(answer.counts.inherited);
  if (answer.repeated) {
    repeated_.fetch_add(1, std::memory_order_relaxed);
    repeated_counter_->Add();
  }
  return reply;
}

void PsServer::Assign(const pb::AssignRequest& request,
                      std::function<void(absl::StatusOr<pb::AssignReply>)> done) {
  absl::Status refused;
  {
    MutexLock lock(&mutex_);
    refused = core_.Admit(Now(), request.context());
  }
  if (!refused.ok()) return done(std::move(refused));
  const absl::StatusOr<AssignPlan> plan = AssignPlan::Check(store_.directory(), request);
  absl::Status bad = Detailed(plan.status());
  if (!bad.ok()) {
    Leave();
    return done(std::move(bad));
  }
  const PushDone push_done = [done = std::move(done)](absl::StatusOr<pb::PushReply> reply) {
    if (!reply.ok()) return done(reply.status());
    pb::AssignReply assigned;
    assigned.set_repeated(reply->repeated());
    done(assigned);
  };
  PushBegun begun;
  {
    MutexLock lock(&mutex_);
    const PsCallId call(++last_call_);
    begun = core_.BeginAssign(Now(), plan->assignment(), call);
    if (begun.step == PushBegun::Step::kWait) waiting_calls_.emplace(call, push_done);
    changed_.SignalAll();
  }
  // Not of a repeat: what it assigned has its room.
  Carry(
      std::move(begun), [&] { return plan->creates_rows() ? CheckRoom() : absl::OkStatus(); },
      [&](const AdmittedPush&) { plan->Apply(); }, push_done);
}

}  // namespace mu
