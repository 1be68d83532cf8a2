// Pushes and assignments: once each, in a cut or after it as a whole.
#include <cmath>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/client/applied_full.h"
#include "common/rpc/frame.h"
#include "common/tensor/dtype.h"
#include "psserver/apply_behind_gate.h"
#include "psserver/server.h"

namespace mu {
namespace {

// The bytes need not be aligned.
bool AllFiniteIn(absl::string_view bytes) {
  for (size_t i = 0; i + sizeof(float) <= bytes.size(); i += sizeof(float)) {
    float value;
    std::memcpy(&value, bytes.data() + i, sizeof(value));
    if (!std::isfinite(value)) return false;
  }
  return true;
}

}  // namespace

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
  const auto directory = store_.directory();
  std::optional<PushPlan> plan;
  ApplyOnce(
      id, counts,
      [&]() -> absl::Status {
        absl::StatusOr<PushPlan> checked = PushPlan::Check(*directory, request, payload);
        if (!checked.ok()) return Detailed(checked.status(), request.step());
        plan.emplace(*std::move(checked));
        if (inherited != nullptr) plan->Skip(*inherited, id);
        return absl::OkStatus();
      },
      [&] { return Detailed(ApplyPush(&*plan, counts), request.step()); }, done);
}

void PsServer::ApplyOnce(const PushId& id, const PushCounts& counts,
                         const std::function<absl::Status()>& check,
                         const std::function<absl::Status()>& apply, const PushDone& done) {
  switch (pushes_.Begin(id, [this, counts, done](absl::Status status) {
    if (!status.ok()) return done(std::move(status));
    done(Acknowledge(/*repeated=*/true, counts));
  })) {
    case Ledger::Answer::kFirst: {
      // All that the push inherited: a repeat, of which nothing need be remembered once more.
      const bool repeated = counts.updates == 0 && counts.inherited > 0;
      std::vector<AppliedPushes::Waiter> waiters;
      const absl::Status status =
          ApplyBehindGate(&gate_, check, apply, [&](const absl::Status& applied) {
            waiters = pushes_.Finish(id, applied.ok() && !repeated);
          });
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
    case Ledger::Answer::kFull: {
      pb::ErrorDetail detail;
      detail.set_kind(pb::ERROR_MACHINE);
      detail.set_role(pb::ROLE_PSSERVER);
      detail.set_index(admission_.index());
      const absl::Status full = absl::ResourceExhaustedError(
          absl::StrCat("the memory of applied updates is full: functions from ",
                       pushes_.low_water(), " on are not covered by checkpoints yet"));
      return done(WithAppliedFull(WithDetail(full, detail)));
    }
  }
}

absl::Status PsServer::ApplyPush(PushPlan* plan, const PushCounts& counts) {
  MU_RETURN_IF_ERROR(admission_.CheckLease());
  if (counts.updates == 0) return absl::OkStatus();
  dirty_.store(true, std::memory_order_relaxed);
  initial_.store(false, std::memory_order_relaxed);
  plan->Apply();
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
  if (variable->definition->proto.dtype() == kFloat32 && !AllFiniteIn(request.value())) {
    return done(Detailed(absl::InvalidArgumentError(
        absl::StrCat("the value for variable '", variable->definition->proto.name(),
                     "' holds NaN or infinity; nothing of it was assigned"))));
  }
  if (request.function() == 0) {
    return done(
        Detailed(absl::InvalidArgumentError("an assignment needs its place among the functions")));
  }
  if (!ClaimPlace(request)) {
    return done(Detailed(absl::InvalidArgumentError(
        absl::StrCat("place ", request.function(),
                     " among the functions belongs to another assignment than this "
                     "one of variable '",
                     variable->definition->proto.name(), "'"))));
  }
  const PushId id{request.function(), request.partition(), /*part=*/0};
  const PartitionKey key{PartitionKey::Kind::kVariable, request.variable(), request.partition()};
  const auto inherited = pushes_.inherited();
  const bool held = inherited != nullptr && inherited->Contains(key, id);
  const PushCounts counts{held ? 0u : 1u, held ? 1u : 0u};
  ApplyOnce(
      id, counts, [] { return absl::OkStatus(); },
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

bool PsServer::ClaimPlace(const pb::AssignRequest& request) {
  const uint64_t low_water = pushes_.low_water();
  MutexLock lock(&places_mutex_);
  places_.RaiseLowWater(low_water);
  return places_.Claim(request.function(), request.variable(), request.partition(),
                       request.value());
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
