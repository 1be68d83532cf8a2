#include "psserver/server.h"

#include <algorithm>
#include <utility>

#include "common/base/error_kind.h"
#include "common/base/status.h"
#include "psserver/scan.h"

namespace mu {
namespace {

template <typename Partition>
pb::PartitionStats StatsOf(uint32_t id, uint32_t number, const Partition& partition) {
  const PartitionLoad load = partition.load();
  pb::PartitionStats stats;
  stats.set_id(id);
  stats.set_partition(number);
  stats.set_bytes(partition.bytes());
  stats.set_reads(load.reads);
  stats.set_read_bytes(load.read_bytes);
  stats.set_updates(load.updates);
  stats.set_update_bytes(load.update_bytes);
  return stats;
}

}  // namespace

PsServer::PsServer(PsServerOptions options)
    : options_(options),
      pull_timer_(options.telemetry->timer("ps.pull", "Pulls, from request to reply")),
      push_timer_(options.telemetry->timer("ps.push", "Pushes, from request to applied")),
      round_timer_(options.telemetry->timer("ps.round", "Synchronous rounds applied")),
      push_wait_timer_(options.telemetry->timer(
          "ps.push_wait", "Waits of pushes for copies that a checkpoint writes")),
      compute_wait_timer_(options.telemetry->timer(
          "ps.compute_wait", "Waits of pulls and pushes with products for a thread")),
      pulled_rows_(options.telemetry->counter("ps.pulled_rows", "Rows of tables sent to workers")),
      repeated_counter_(options.telemetry->counter(
          "ps.repeated_pushes", "Pushes that had been applied before, and were not again")),
      late_counter_(options.telemetry->counter(
          "ps.staleness_updates", "Sum over pushes by how many updates their latest gradient was")),
      judged_counter_(
          options.telemetry->counter("ps.staleness_pushes", "Pushes of which that is known")),
      too_late_counter_(options.telemetry->counter(
          "ps.too_late_pushes", "Pushes refused since their gradients were too late")),
      cut_timer_(
          options.telemetry->timer("ps.cut", "Stops of pushes while a checkpoint takes its cut")),
      save_timer_(
          options.telemetry->timer("ps.save", "Saves of this server's part of a checkpoint")),
      restore_timer_(options.telemetry->timer("ps.restore", "Restores of this server's state")),
      load_view_timer_(options.telemetry->timer(
          "ps.load_view", "Loads of a checkpoint's values for evaluations beside training")),
      core_({.leased = options.leased,
             .registers = options.registers,
             .most_remembered =
                 options.most_applied == 0
                     ? Ledger::kDefaultMost
                     : std::max<size_t>(1, options.most_applied / AppliedSteps::kEntryBytes)}),
      compute_(options.compute_threads, [this] { options_.at("product"); }),
      waiting_(/*max_threads=*/256) {}

PsServer::~PsServer() {
  {
    MutexLock lock(&mutex_);
    core_.CancelSave("the server ends");
  }
  EndReading();
}

void PsServer::Leave() {
  MutexLock lock(&mutex_);
  core_.Leave();
  if (core_.RestoreMayStart()) changed_.SignalAll();
}

absl::Status PsServer::SetIdentity(uint64_t job, uint64_t epoch, uint32_t index) {
  MutexLock lock(&mutex_);
  return core_.SetIdentity(job, epoch, index);
}

bool PsServer::placed() const {
  MutexLock lock(&mutex_);
  return core_.placed();
}

void PsServer::RenewLease(int64_t sent_ns, absl::Duration lease, uint64_t least_generation) {
  MutexLock lock(&mutex_);
  core_.RenewLease(sent_ns, lease, least_generation);
}

void PsServer::RaiseLowWater(uint64_t function) {
  MutexLock lock(&mutex_);
  core_.RaiseLowWater(function);
}

PsServer::AppliedUsage PsServer::applied_usage() const {
  MutexLock lock(&mutex_);
  const Ledger& ledger = core_.pushes().ledger();
  return {ledger.entries() * AppliedSteps::kEntryBytes, ledger.most() * AppliedSteps::kEntryBytes};
}

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
  {
    MutexLock lock(&mutex_);
    detail.set_index(core_.index());
  }
  detail.set_step(step);
  return WithDetail(std::move(status), detail);
}

absl::StatusOr<pb::ConfigurePsReply> PsServer::Configure(const pb::ConfigurePsRequest& request) {
  {
    MutexLock lock(&mutex_);
    MU_RETURN_IF_ERROR(core_.AdmitConfigure(request.context(), request.index()));
  }
  MutexLock configuring(&configure_mutex_);
  bool may_replace = false;
  {
    MutexLock lock(&mutex_);
    MU_ASSIGN_OR_RETURN(may_replace, core_.BeginConfigure(request.context()));
  }
  const WorkProgress::Scope executing(&progress_);
  const auto change =
      store_.Configure(request.routing(), request.index(), may_replace,
                       [this](uint64_t bytes) { return CheckRoomForVariables(bytes); });
  if (!change.ok()) return Detailed(change.status());
  {
    MutexLock lock(&mutex_);
    core_.EndConfigure(request.context(), *change, request.restore_follows());
    changed_.SignalAll();
  }
  FreeViews();
  return pb::ConfigurePsReply();
}

absl::StatusOr<Buffer> PsServer::Scan(const pb::ScanRequest& request) {
  {
    MutexLock lock(&mutex_);
    MU_RETURN_IF_ERROR(core_.Admit(Now(), request.context()));
  }
  const UnderWay under_way(this);
  const auto directory = store_.directory();
  auto reply = ExecuteScan(*directory, request, options_.most_reply_bytes);
  if (!reply.ok()) return Detailed(reply.status());
  return reply;
}

absl::StatusOr<pb::FenceReply> PsServer::Fence(const pb::FenceRequest& request) {
  MutexLock lock(&mutex_);
  MU_RETURN_IF_ERROR(core_.BeginFence(Now(), request.context()));
  while (!core_.FenceHolds(request.context().low_water())) changed_.Wait(&mutex_);
  core_.Leave();
  changed_.SignalAll();
  return pb::FenceReply();
}

void PsServer::AddMetrics(MetricList* list) {
  const StoreUsage usage = store_.Usage();
  list->Gauge("muster_ps_rows", "Rows of tables that exist", static_cast<double>(usage.rows));
  list->Gauge("muster_ps_value_bytes",
              "Memory of values and optimizer slots in use, of tables whole pages, in bytes",
              static_cast<double>(usage.memory));
  if (options_.most_values > 0) {
    list->Gauge("muster_ps_value_limit_bytes",
                "Most that they and the values of views may be, in bytes",
                static_cast<double>(options_.most_values));
  }
  list->Counter("muster_ps_pushes_applied_total", "Pushes applied",
                static_cast<double>(applied_.load()));
  const AppliedUsage applied = applied_usage();
  list->Gauge("muster_ps_applied_memory_bytes",
              "Memory for which updates were applied since the last checkpoints, in bytes",
              static_cast<double>(applied.bytes));
  list->Gauge("muster_ps_applied_memory_limit_bytes", "Most that this memory may be, in bytes",
              static_cast<double>(applied.most_bytes));
  MutexLock lock(&mutex_);
  list->Gauge("muster_ps_view_bytes",
              "Values of checkpoints that are read beside the state, in bytes",
              static_cast<double>(core_.views().bytes()));
  list->Gauge("muster_ps_generation", "Generation of the state; grows with every restore",
              static_cast<double>(core_.generation()));
}

absl::StatusOr<pb::PsStatsReply> PsServer::GetStats(const pb::PsStatsRequest& request) {
  pb::PsStatsReply reply;
  std::vector<View> views;
  {
    MutexLock lock(&mutex_);
    if (request.context().job() != 0) MU_RETURN_IF_ERROR(core_.AdmitLook(request.context()));
    reply.set_remembered_steps(core_.pushes().ledger().remembered_steps());
    reply.set_views(core_.views().loaded());
    reply.set_view_bytes(core_.views().loading_bytes());
    for (const auto& [id, view] : views_) views.push_back(view);
  }
  for (const View& view : views) reply.set_view_bytes(reply.view_bytes() + UsageOf(*view).bytes);
  const StoreUsage usage = store_.Usage();
  reply.set_value_bytes(usage.bytes);
  reply.set_rows(usage.rows);
  reply.set_pushes(applied_.load());
  reply.set_repeated_pushes(repeated_.load());
  reply.set_pulls(pulls_.load());
  reply.set_resident_bytes(ResidentBytes());
  const auto directory = store_.directory();
  for (const StoredVariable* variable : directory->SortedVariables()) {
    const uint32_t id = variable->definition->proto.id();
    for (uint32_t p = 0; p < variable->partitions.size(); ++p) {
      const VariablePartition* const partition = variable->partitions[p].get();
      if (partition == nullptr) continue;
      pb::VariableKey* held = reply.add_held();
      held->set_variable(id);
      held->set_partition(p);
      *reply.add_partitions() = StatsOf(id, p, *partition);
    }
  }
  for (const StoredTable* table : directory->SortedTables()) {
    for (uint32_t p = 0; p < table->partitions.size(); ++p) {
      const TablePartition* const partition = table->partitions[p].get();
      if (partition == nullptr) continue;
      pb::PartitionStats& stats = *reply.add_partitions();
      stats = StatsOf(table->definition->proto.id(), p, *partition);
      stats.set_table(true);
      stats.set_rows(partition->rows());
    }
  }
  return reply;
}

}  // namespace mu
