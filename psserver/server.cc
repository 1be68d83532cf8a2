#include "psserver/server.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/obs/log.h"
#include "common/rpc/frame.h"
#include "psserver/checkpoint/checkpoint.h"
#include "psserver/pull.h"
#include "psserver/push.h"

namespace mu {

PsServer::PsServer(PsServerOptions options)
    : options_(options),
      pull_timer_(options.telemetry->timer("ps.pull")),
      push_timer_(options.telemetry->timer("ps.push")),
      pulled_rows_(options.telemetry->counter("ps.pulled_rows")),
      repeated_counter_(options.telemetry->counter("ps.repeated_pushes")),
      admission_(options.clock, options.leased) {}

absl::Status PsServer::Detailed(absl::Status status, int64_t step) const {
  if (status.ok() || DetailOf(status).has_value()) return status;
  pb::ErrorDetail detail;
  const pb::ErrorKind kind = KindOf(status);
  // What the disk or the memory lacks is no fault of the user's function.
  const bool machine = status.code() == absl::StatusCode::kResourceExhausted ||
                       status.code() == absl::StatusCode::kInternal || status.code() == absl::StatusCode::kDataLoss;
  detail.set_kind(machine ? pb::ERROR_MACHINE : kind);
  detail.set_role(pb::ROLE_PSSERVER);
  detail.set_index(admission_.index());
  detail.set_step(step);
  return WithDetail(std::move(status), detail);
}

absl::StatusOr<pb::ConfigurePsReply> PsServer::Configure(const pb::ConfigurePsRequest& request) {
  MU_RETURN_IF_ERROR(admission_.AdmitConfigure(request.context(), request.index()));
  MU_RETURN_IF_ERROR(Detailed(store_.Configure(request.routing(), request.index())));
  admission_.Configured(request.context());
  return pb::ConfigurePsReply();
}

absl::StatusOr<Buffer> PsServer::Pull(const Buffer& frame) {
  ScopedTimer timing(pull_timer_);
  pb::PullRequest request;
  const auto payload = ParseFrame(frame, &request);
  if (!payload.ok()) return Detailed(payload.status());
  MU_ASSIGN_OR_RETURN(const Admission::Ticket ticket, admission_.Admit(request.context()));
  pushes_.RaiseLowWater(request.context().low_water());
  pulls_.fetch_add(1, std::memory_order_relaxed);
  pulled_rows_->Add(static_cast<int64_t>(payload->size() / sizeof(int64_t)));
  const auto directory = store_.directory();
  auto reply = ExecutePull(*directory, request, *payload);
  if (!reply.ok()) return Detailed(reply.status());
  return reply;
}

absl::Status PsServer::ApplyPush(const pb::PushRequest& request, absl::Span<const char> payload) {
  const auto directory = store_.directory();
  MU_ASSIGN_OR_RETURN(PushPlan plan, PushPlan::Check(*directory, request, payload));
  MU_RETURN_IF_ERROR(admission_.CheckLease());
  dirty_.store(true, std::memory_order_relaxed);
  plan.Apply();
  applied_.fetch_add(1, std::memory_order_relaxed);
  return absl::OkStatus();
}

void PsServer::Push(const Buffer& frame, std::function<void(absl::StatusOr<pb::PushReply>)> done) {
  ScopedTimer timing(push_timer_);
  pb::PushRequest request;
  const auto payload = ParseFrame(frame, &request);
  if (!payload.ok()) return done(Detailed(payload.status()));
  const auto ticket = admission_.Admit(request.context());
  if (!ticket.ok()) return done(ticket.status());
  pushes_.RaiseLowWater(request.context().low_water());

  const PushId id{request.function(), request.step(), request.part()};
  const auto acknowledge = [this](bool repeated) -> absl::StatusOr<pb::PushReply> {
    MU_RETURN_IF_ERROR(admission_.CheckLease());
    pb::PushReply reply;
    reply.set_repeated(repeated);
    if (repeated) {
      repeated_.fetch_add(1, std::memory_order_relaxed);
      repeated_counter_->Add();
    }
    return reply;
  };
  switch (pushes_.Begin(id, [acknowledge, done](absl::Status status) {
    if (!status.ok()) return done(std::move(status));
    done(acknowledge(true));
  })) {
    case Ledger::Answer::kFirst: {
      const absl::Status status = Detailed(ApplyPush(request, *payload), request.step());
      pushes_.Finish(id, status);
      if (!status.ok()) return done(status);
      return done(acknowledge(false));
    }
    case Ledger::Answer::kRepeat:
      return done(acknowledge(true));
    case Ledger::Answer::kInProgress:
      return;
    case Ledger::Answer::kStale: {
      pb::ErrorDetail detail;
      detail.set_kind(pb::ERROR_STALE);
      detail.set_role(pb::ROLE_PSSERVER);
      detail.set_index(admission_.index());
      return done(WithDetail(absl::FailedPreconditionError(absl::StrCat(
                                 "a push of function ", id.function, " is refused: every function below ",
                                 pushes_.low_water(), " is finished")),
                             detail));
    }
    case Ledger::Answer::kFull:
      return done(Detailed(absl::ResourceExhaustedError(
          "the memory of applied steps is full: the coordinator's low-water mark of finished functions stands still")));
  }
}

absl::StatusOr<pb::AssignReply> PsServer::Assign(const pb::AssignRequest& request) {
  MU_ASSIGN_OR_RETURN(const Admission::Ticket ticket, admission_.Admit(request.context()));
  const auto directory = store_.directory();
  const StoredVariable* variable = directory->variable(request.variable());
  if (variable == nullptr || request.partition() >= variable->partitions.size() ||
      variable->partitions[request.partition()] == nullptr) {
    return Detailed(absl::InvalidArgumentError(absl::StrCat("partition ", request.partition(), " of the variable with id ",
                                                            request.variable(), " is not held here")));
  }
  VariablePartition* partition = variable->partitions[request.partition()].get();
  if (request.value().size() != partition->value_bytes()) {
    return Detailed(absl::InvalidArgumentError(
        absl::StrCat("variable '", variable->definition->proto.name(), "' partition ", request.partition(), " has ",
                     partition->value_bytes(), " bytes; ", request.value().size(), " were given")));
  }
  partition->Assign(request.value().data());
  return pb::AssignReply();
}

absl::StatusOr<pb::FenceReply> PsServer::Fence(const pb::FenceRequest& request) {
  MU_RETURN_IF_ERROR(admission_.AdmitControl(request.context()));
  pushes_.Fence(request.context().low_water());
  return pb::FenceReply();
}

absl::StatusOr<pb::SaveReply> PsServer::Save(const pb::SaveRequest& request) {
  MU_ASSIGN_OR_RETURN(const Admission::Ticket ticket, admission_.Admit(request.context()));
  const auto directory = store_.directory();
  auto file = SaveCheckpointFile(*directory, request.directory(), request.file());
  if (!file.ok()) return Detailed(file.status());
  pb::SaveReply reply;
  *reply.mutable_file() = *std::move(file);
  return reply;
}

absl::StatusOr<pb::RestoreReply> PsServer::Restore(const pb::RestoreRequest& request) {
  MU_RETURN_IF_ERROR(admission_.AdmitControl(request.context()));
  MU_RETURN_IF_ERROR(Detailed(VerifyCheckpointFiles(request.directory(), request.files())));
  MU_ASSIGN_OR_RETURN(const bool begun, admission_.BeginRestore(request.context(), dirty_.load()));
  pb::RestoreReply reply;
  if (!begun) {
    MutexLock lock(&restore_mutex_);
    reply.set_rows(restored_rows_);
    return reply;
  }
  absl::Status status = store_.Reset();
  pushes_.Clear();
  pushes_.RaiseLowWater(request.context().low_water());
  dirty_.store(false);
  uint64_t rows = 0;
  if (status.ok() && !request.files().empty()) {
    auto loaded = LoadCheckpoint(*store_.directory(), request.directory(), request.files());
    status = loaded.status();
    if (loaded.ok()) rows = *loaded;
  }
  if (status.ok()) {
    MutexLock lock(&restore_mutex_);
    restored_rows_ = rows;
  }
  admission_.EndRestore(status.ok());
  if (!status.ok()) return Detailed(status);
  MU_LOG(INFO, "restored {} rows in generation {}", rows, request.context().generation());
  reply.set_rows(rows);
  return reply;
}

absl::StatusOr<pb::PsStatsReply> PsServer::GetStats(const pb::PsStatsRequest& request) {
  if (request.context().job() != 0) MU_RETURN_IF_ERROR(admission_.AdmitControl(request.context()));
  pb::PsStatsReply reply;
  const StoreUsage usage = store_.Usage();
  reply.set_value_bytes(usage.bytes);
  reply.set_rows(usage.rows);
  reply.set_pushes(applied_.load());
  reply.set_repeated_pushes(repeated_.load());
  reply.set_pulls(pulls_.load());
  reply.set_remembered_steps(pushes_.remembered_steps());
  reply.set_resident_bytes(ResidentBytes());
  const auto directory = store_.directory();
  for (const StoredVariable* variable : directory->SortedVariables()) {
    for (uint32_t p = 0; p < variable->partitions.size(); ++p) {
      if (variable->partitions[p] == nullptr) continue;
      pb::VariableKey* held = reply.add_held();
      held->set_variable(variable->definition->proto.id());
      held->set_partition(p);
    }
  }
  return reply;
}

}  // namespace mu
