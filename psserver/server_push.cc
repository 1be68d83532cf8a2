// Pushes and assignments: once each, in a cut or after it as a whole.
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/rpc/frame.h"
#include "psserver/server.h"

namespace mu {

void PsServer::Push(const Buffer& frame, PushDone done) {
  const auto request = std::make_shared<pb::PushRequest>();
  const auto payload = ParseFrame(frame, request.get());
  if (!payload.ok()) return done(Detailed(payload.status()));
  if (copies_.HasRoom()) return PushNow(*request, *payload, done);
  // A thread of the transport must not wait.
  waiting_.Post([this, frame, request, payload = *payload, done = std::move(done)] {
    WaitForCopies();
    PushNow(*request, payload, done);
  });
}

void PsServer::WaitForCopies() {
  ScopedTimer timing(push_wait_timer_);
  if (copies_.WaitForRoom(options_.most_wait)) return;
  saves_.Cancel(
      "parameters change faster than they can be written, and the copies take too much memory");
  (void)copies_.WaitForRoom(options_.most_wait);
}

void PsServer::PushNow(const pb::PushRequest& request, absl::Span<const char> payload,
                       const PushDone& done) {
  ScopedTimer timing(push_timer_);
  const auto ticket = admission_.Admit(request.context());
  if (!ticket.ok()) return done(ticket.status());
  pushes_.RaiseLowWater(request.context().low_water());

  const PushId id{request.function(), request.step(), request.part()};
  const auto inherited = pushes_.inherited();
  const PushCounts counts = CountUpdates(request, inherited.get());
  ApplyOnce(
      id, counts,
      [&] {
        return Detailed(ApplyPush(request, payload, inherited.get(), counts), request.step());
      },
      done);
}

void PsServer::ApplyOnce(const PushId& id, const PushCounts& counts,
                         const std::function<absl::Status()>& apply, const PushDone& done) {
  switch (pushes_.Begin(id, [this, counts, done](absl::Status status) {
    if (!status.ok()) return done(std::move(status));
    done(Acknowledge(/*repeated=*/true, counts));
  })) {
    case Ledger::Answer::kFirst: {
      // All that the push inherited: a repeat, of which nothing need be remembered once more.
      const bool repeated = counts.updates == 0 && counts.inherited > 0;
      absl::Status status;
      std::vector<AppliedPushes::Waiter> waiters;
      {
        CutGate::Change change(&gate_);
        status = apply();
        waiters = pushes_.Finish(id, status.ok() && !repeated);
      }
      for (const AppliedPushes::Waiter& waiter : waiters) waiter(status);
      if (!status.ok()) return done(status);
      return done(Acknowledge(repeated, counts));
    }
    case Ledger::Answer::kRepeat:
      return done(Acknowledge(/*repeated=*/true, counts));
    case Ledger::Answer::kInProgress:
      return;
    case Ledger::Answer::kStale: {
      pb::ErrorDetail detail;
      detail.set_kind(pb::ERROR_STALE);
      detail.set_role(pb::ROLE_PSSERVER);
      detail.set_index(admission_.index());
      return done(WithDetail(
          absl::FailedPreconditionError(absl::StrCat("an update of function ", id.function,
                                                     " is refused: every function below ",
                                                     pushes_.low_water(), " is finished")),
          detail));
    }
    case Ledger::Answer::kFull:
      return done(Detailed(
          absl::ResourceExhaustedError("the memory of applied steps is full: the coordinator's "
                                       "low-water mark of finished functions stands still")));
  }
}

absl::Status PsServer::ApplyPush(const pb::PushRequest& request, absl::Span<const char> payload,
                                 const InheritedMemory* inherited, const PushCounts& counts) {
  const auto directory = store_.directory();
  MU_ASSIGN_OR_RETURN(PushPlan plan, PushPlan::Check(*directory, request, payload));
  if (inherited != nullptr)
    plan.Skip(*inherited, {request.function(), request.step(), request.part()});
  MU_RETURN_IF_ERROR(admission_.CheckLease());
  if (counts.updates == 0) return absl::OkStatus();
  dirty_.store(true, std::memory_order_relaxed);
  initial_.store(false, std::memory_order_relaxed);
  plan.Apply();
  applied_.fetch_add(1, std::memory_order_relaxed);
  return absl::OkStatus();
}

void PsServer::Assign(const pb::AssignRequest& request,
                      std::function<void(absl::StatusOr<pb::AssignReply>)> done) {
  const auto ticket = admission_.Admit(request.context());
  if (!ticket.ok()) return done(ticket.status());
  pushes_.RaiseLowWater(request.context().low_water());
  const auto directory = store_.directory();
  const StoredVariable* variable = directory->variable(request.variable());
  if (variable == nullptr || request.partition() >= variable->partitions.size() ||
      variable->partitions[request.partition()] == nullptr) {
    return done(Detailed(absl::InvalidArgumentError(
        absl::StrCat("partition ", request.partition(), " of the variable with id ",
                     request.variable(), " is not held here"))));
  }
  VariablePartition* const partition = variable->partitions[request.partition()].get();
  if (request.value().size() != partition->value_bytes()) {
    return done(Detailed(absl::InvalidArgumentError(absl::StrCat(
        "variable '", variable->definition->proto.name(), "' partition ", request.partition(),
        " has ", partition->value_bytes(), " bytes; ", request.value().size(), " were given"))));
  }
  if (request.function() == 0) {
    return done(
        Detailed(absl::InvalidArgumentError("an assignment needs its place among the functions")));
  }
  const PushId id{request.function(), request.partition(), /*part=*/0};
  const PartitionKey key{PartitionKey::Kind::kVariable, request.variable(), request.partition()};
  const auto inherited = pushes_.inherited();
  const bool held = inherited != nullptr && inherited->Contains(key, id);
  const PushCounts counts{held ? 0u : 1u, held ? 1u : 0u};
  ApplyOnce(
      id, counts,
      [&] {
        const absl::Status lease = admission_.CheckLease();
        if (!lease.ok() || held) return lease;
        initial_.store(false);
        partition->Assign(request.value().data());
        return absl::OkStatus();
      },
      [done = std::move(done)](absl::StatusOr<pb::PushReply> reply) {
        if (!reply.ok()) return done(reply.status());
        pb::AssignReply assigned;
        assigned.set_repeated(reply->repeated());
        done(assigned);
      });
}

absl::StatusOr<pb::PushReply> PsServer::Acknowledge(bool repeated, const PushCounts& counts) {
  MU_RETURN_IF_ERROR(admission_.CheckLease());
  pb::PushReply reply;
  reply.set_repeated(repeated);
  reply.set_updates(counts.updates);
  reply.set_inherited(counts.inherited);
  if (repeated) {
    repeated_.fetch_add(1, std::memory_order_relaxed);
    repeated_counter_->Add();
  }
  return reply;
}

}  // namespace mu
