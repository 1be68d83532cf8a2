#include "psserver/server.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/rpc/frame.h"
#include "psserver/pull.h"

namespace mu {

PsServer::PsServer(PsServerOptions options)
    : options_(options),
      pull_timer_(options.telemetry->timer("ps.pull")),
      push_timer_(options.telemetry->timer("ps.push")),
      push_wait_timer_(options.telemetry->timer("ps.push_wait")),
      pulled_rows_(options.telemetry->counter("ps.pulled_rows")),
      repeated_counter_(options.telemetry->counter("ps.repeated_pushes")),
      cut_timer_(options.telemetry->timer("ps.cut")),
      save_timer_(options.telemetry->timer("ps.save")),
      restore_timer_(options.telemetry->timer("ps.restore")),
      admission_(options.clock, options.leased, options.registers),
      pushes_(options.most_applied == 0
                  ? Ledger::kDefaultMost
                  : std::max<size_t>(1, options.most_applied / AppliedSteps::kEntryBytes)),
      waiting_(/*max_threads=*/256) {}

PsServer::~PsServer() { saves_.CancelAndWait("the server ends"); }

absl::Status PsServer::Detailed(absl::Status status, int64_t step) const {
  if (status.ok()) return status;
  pb::ErrorDetail detail = DetailOf(status).value_or(pb::ErrorDetail());
  if (detail.role() != pb::ROLE_UNSPECIFIED) return status;
  const pb::ErrorKind kind = KindOf(status);
  // What the disk or the memory lacks is no fault of the user's function.
  const bool machine = status.code() == absl::StatusCode::kResourceExhausted ||
                       status.code() == absl::StatusCode::kInternal ||
                       status.code() == absl::StatusCode::kDataLoss ||
                       status.code() == absl::StatusCode::kAborted;
  detail.set_kind(machine ? pb::ERROR_MACHINE : kind);
  detail.set_role(pb::ROLE_PSSERVER);
  detail.set_index(admission_.index());
  detail.set_step(step);
  return WithDetail(std::move(status), detail);
}

absl::StatusOr<pb::ConfigurePsReply> PsServer::Configure(const pb::ConfigurePsRequest& request) {
  MU_RETURN_IF_ERROR(admission_.AdmitConfigure(request.context(), request.index()));
  MutexLock lock(&configure_mutex_);
  MU_RETURN_IF_ERROR(
      admission_.AdmitControl(request.context()));  // a newer coordinator may have been quicker
  // A newer coordinator restores all servers; it may have other definitions, or place them on more
  // servers or fewer.
  const bool replace = request.context().epoch() > configured_epoch_;
  MU_RETURN_IF_ERROR(Detailed(store_.Configure(request.routing(), request.index(), replace)));
  configured_epoch_ = request.context().epoch();
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
  auto reply = ExecutePull(*directory, request, *payload, options_.most_reply_bytes);
  if (!reply.ok()) return Detailed(reply.status());
  return reply;
}

absl::StatusOr<pb::FenceReply> PsServer::Fence(const pb::FenceRequest& request) {
  MU_RETURN_IF_ERROR(admission_.AdmitControl(request.context()));
  // Of this generation: one that comes after a restore would refuse what that makes run again.
  MU_ASSIGN_OR_RETURN(const Admission::Ticket ticket, admission_.AdmitFence(request.context()));
  pushes_.Fence(request.context().low_water());
  return pb::FenceReply();
}

absl::StatusOr<pb::PsStatsReply> PsServer::GetStats(const pb::PsStatsRequest& request) {
  if (request.context().job() != 0) MU_RETURN_IF_ERROR(admission_.AdmitLook(request.context()));
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
