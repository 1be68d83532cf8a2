// Membership, installation on workers, the monitor; the rest of the runtime is in runtime.cc.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/obs/log.h"
#include "common/rpc/typed.h"
#include "coordinator/cluster/runtime.h"

namespace mu {
namespace {

// Installing may wait for a large graph to compile or a file to be listed, not for data.
constexpr absl::Duration kInstallTimeout = absl::Seconds(60);

}  // namespace

MethodTable Runtime::Methods() {
  MethodTable methods;
  methods.AddUnary("/muster.Coordinator/Register", RunOn::kTransportThread,
                   TypedHandler<pb::RegisterRequest>([this](const auto& r) { return OnRegister(r); }));
  methods.AddUnary("/muster.Coordinator/Heartbeat", RunOn::kTransportThread,
                   TypedHandler<pb::HeartbeatRequest>([this](const auto& r) { return OnHeartbeat(r); }));
  methods.AddUnary("/muster.Coordinator/Leave", RunOn::kOwnThread,
                   [this](std::shared_ptr<ServerCall> call, Buffer bytes) { OnLeave(std::move(call), bytes); });
  methods.AddUnary("/muster.Coordinator/GetStatus", RunOn::kTransportThread,
                   TypedHandler<pb::GetStatusRequest>([this](const pb::GetStatusRequest&) {
                     return absl::StatusOr<pb::GetStatusReply>(Status());
                   }));
  return methods;
}

absl::StatusOr<pb::RegisterReply> Runtime::OnRegister(const pb::RegisterRequest& request) {
  MutexLock lock(&mutex_);
  if (stopping_) return absl::UnavailableError("the coordinator is shutting down");
  if (departed_.contains(request.incarnation())) {
    return absl::FailedPreconditionError("this daemon has taken its leave");
  }
  MU_ASSIGN_OR_RETURN(const Membership::Registered registered, membership_.Register(request, absl::Now()));
  const Member& member = registered.member;
  if (!registered.known) {
    if (registered.replaced) {
      // Nobody knows that the older process is dead: what it may still do ends with its lease.
      if (member.role == pb::ROLE_PSSERVER) {
        leases_out_ = std::max(leases_out_, registered.replaced->last_heartbeat + options_.timeout);
      }
      MemberLost(*registered.replaced, "replaced", "another process took its place");
    }
    MU_LOG(INFO, "{} {} registered from {} (pid {})",
           member.role == pb::ROLE_WORKER ? "worker" : "server", member.index, member.address, member.pid);
    if (member.role == pb::ROLE_WORKER) {
      AddWorker(member);
    } else {
      Act(recovery_.ServerReady(member.index));
    }
    changed_.SignalAll();
  }
  pb::RegisterReply reply;
  reply.set_job(options_.job.value());
  reply.set_epoch(options_.epoch.value());
  reply.set_index(member.index);
  reply.set_heartbeat_ms(static_cast<uint32_t>(absl::ToInt64Milliseconds(options_.heartbeat)));
  reply.set_lease_ms(static_cast<uint32_t>(absl::ToInt64Milliseconds(options_.timeout)));
  return reply;
}

absl::StatusOr<pb::HeartbeatReply> Runtime::OnHeartbeat(const pb::HeartbeatRequest& request) {
  MutexLock lock(&mutex_);
  if (request.job() != options_.job.value()) {
    return absl::NotFoundError("this coordinator runs another job; register again");
  }
  if (request.epoch() > options_.epoch.value()) {
    newer_epoch_ = std::max(newer_epoch_, request.epoch());
    changed_.SignalAll();
    return absl::NotFoundError("a newer coordinator has taken over; register there");
  }
  MU_RETURN_IF_ERROR(membership_.Heartbeat(request, absl::Now()));
  pb::HeartbeatReply reply;
  reply.set_low_water(queue_.low_water().value());
  reply.set_lease_ms(static_cast<uint32_t>(absl::ToInt64Milliseconds(options_.timeout)));
  return reply;
}

void Runtime::OnLeave(std::shared_ptr<ServerCall> call, const Buffer& bytes) {
  pb::LeaveRequest request;
  if (!request.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return call->Finish(absl::InvalidArgumentError("the request does not parse as a LeaveRequest"));
  }
  if (request.role() == pb::ROLE_PSSERVER) return LeavingServer(call, request);
  {
    MutexLock lock(&mutex_);
    if (const auto it = links_.find(WorkerId(request.index()));
        it != links_.end() && it->second->member.incarnation == Incarnation(request.incarnation())) {
      // It runs nothing any more, but its last results may still be on their way: what they say would be repeated.
      const std::shared_ptr<WorkerLink> link = it->second;
      queue_.WorkerDrains(link->id);
      const absl::Time until = absl::Now() + options_.timeout;
      while (!link->gone && !stopping_ && !link->runs.empty() && absl::Now() < until) {
        changed_.WaitFor(&mutex_, until - absl::Now());
      }
    }
    if (auto left = membership_.Remove(request.role(), request.index(), Incarnation(request.incarnation()))) {
      MemberLost(*left, "left", request.reason());
      Dispatch();
    }
  }
  call->Finish(absl::OkStatus(), Buffer(pb::LeaveReply().SerializeAsString()));
}

void Runtime::AddWorker(const Member& member) {
  auto link = std::make_shared<WorkerLink>();
  link->id = WorkerId(member.index);
  link->member = member;
  link->channel = options_.transport->Connect(member.address);
  links_[link->id] = link;
  link->installer = std::thread([this, link] { InstallLoop(link); });
}

void Runtime::MemberLost(const Member& member, const std::string& kind, const std::string& message) {
  const bool is_worker = member.role == pb::ROLE_WORKER;
  if (!stopping_) {
    MU_LOG(WARN, "{} {} (pid {}, {}) {}: {}", is_worker ? "worker" : "server", member.index, member.pid,
           member.address, kind, message);
    stats_.failures.push_back({member.role, member.index, kind, SecondsUp(), message});
  }
  if (is_worker) {
    const WorkerId id(member.index);
    const auto it = links_.find(id);
    if (it == links_.end() || it->second->member.incarnation != member.incarnation) return;
    std::shared_ptr<WorkerLink> link = it->second;
    link->gone = true;
    links_.erase(it);
    if (!stopping_) NoteRunsOf(id);
    queue_.WorkerLost(id);
    ForgetReader(id);
    for (auto& [run, call] : link->runs) call->Cancel();
    if (link->install_call != nullptr) link->install_call->Cancel();
    old_links_.push_back(std::move(link));
    changed_.SignalAll();
    return;
  }
  ServerLost(member, kind, message);
}

void Runtime::SetOnSilent(std::function<void(const Member&)> on_silent) {
  MutexLock lock(&mutex_);
  on_silent_ = std::move(on_silent);
}

bool Runtime::IsMember(int64_t pid) const {
  MutexLock lock(&mutex_);
  const std::vector<Member> members = membership_.All();
  return std::any_of(members.begin(), members.end(), [&](const Member& member) { return member.pid == pid; });
}

void Runtime::DaemonDied(int64_t pid, const std::string& message) {
  MutexLock lock(&mutex_);
  for (const Member& member : membership_.All()) {
    if (member.pid != pid) continue;
    if (auto lost = membership_.Remove(member.role, member.index, member.incarnation)) {
      MemberLost(*lost, "died", message);
    }
  }
  Dispatch();
}

template <typename Reply, typename Request>
absl::Status Runtime::InstallCall(WorkerLink& link, const char* method, const Request& request) {
  struct Waiter {
    Notification done;
    absl::Status status;
  };
  auto waiter = std::make_shared<Waiter>();
  {
    MutexLock lock(&mutex_);
    if (link.gone) return absl::CancelledError("the worker is gone");
    link.install_call = CallAsync<Reply>(*link.channel, method, request, {.timeout = kInstallTimeout},
                                         [waiter](absl::StatusOr<Reply> reply) {
                                           waiter->status = reply.status();
                                           waiter->done.Notify();
                                         });
  }
  waiter->done.Wait();
  MutexLock lock(&mutex_);
  link.install_call = nullptr;
  return waiter->status;
}

absl::Status Runtime::InstallOn(WorkerLink& link, const Catalog::Delta& delta) {
  const pb::RequestContext context = Context();
  if (delta.has_routing) {
    pb::ConfigureWorkerRequest request;
    *request.mutable_context() = context;
    *request.mutable_routing() = delta.routing;
    MU_RETURN_IF_ERROR(InstallCall<pb::ConfigureWorkerReply>(link, "/muster.Worker/Configure", request));
  }
  for (const auto& dataset : delta.datasets) {
    pb::InstallDatasetRequest request;
    *request.mutable_context() = context;
    *request.mutable_dataset() = dataset;
    MU_RETURN_IF_ERROR(InstallCall<pb::InstallDatasetReply>(link, "/muster.Worker/InstallDataset", request));
  }
  for (const auto& function : delta.functions) {
    pb::InstallFunctionRequest request;
    *request.mutable_context() = context;
    *request.mutable_function() = function.proto;
    request.set_fingerprint(function.fingerprint.value());
    MU_RETURN_IF_ERROR(InstallCall<pb::InstallFunctionReply>(link, "/muster.Worker/InstallFunction", request));
  }
  return absl::OkStatus();
}

void Runtime::InstallLoop(std::shared_ptr<WorkerLink> link) {
  while (true) {
    Catalog::Delta delta;
    {
      MutexLock lock(&mutex_);
      while (!link->gone && !stopping_ &&
             (link->installed_version == catalog_.version() || catalog_.version() == 0)) {
        changed_.Wait(&mutex_);
      }
      if (link->gone || stopping_) break;
      delta = catalog_.Since(link->installed_version);
    }
    const absl::Status status = InstallOn(*link, delta);
    MutexLock lock(&mutex_);
    if (link->gone || stopping_) break;
    if (status.ok()) {
      link->installed_version = delta.version;
      queue_.WorkerReady(link->id, delta.version);
      changed_.SignalAll();
      Dispatch();
      continue;
    }
    if (KindOf(status) == pb::ERROR_USER) {
      // What was created is wrong (a graph that does not verify, say): no other worker would take it either.
      link->installed_version = delta.version;
      MU_LOG(ERROR, "worker {}: {}", link->id, status);
      BeginCancel(status);
      continue;
    }
    if (auto lost = membership_.Remove(pb::ROLE_WORKER, link->id.value(), link->member.incarnation)) {
      MemberLost(*lost, "unreachable", std::string(status.message()));
      Dispatch();
    }
    break;
  }
  MutexLock lock(&mutex_);
  link->installer_ended = true;
  changed_.SignalAll();
}

void Runtime::Monitor() {
  while (true) {
    bool cancel = false;
    uint64_t newer = options_.newest_epoch != nullptr ? options_.newest_epoch() : 0;
    std::vector<std::shared_ptr<WorkerLink>> ended;
    std::vector<Member> silent;
    std::function<void(const Member&)> on_silent;
    {
      MutexLock lock(&mutex_);
      if (!cancelling_ && !stopping_) changed_.WaitFor(&mutex_, options_.heartbeat);
      if (stopping_) return;
      silent = membership_.Expire(absl::Now());
      on_silent = on_silent_;
      for (const Member& member : silent) {
        MemberLost(member, "silent",
                   absl::StrCat("no heartbeat for ", absl::FormatDuration(options_.timeout)));
      }
      Dispatch();
      cancel = cancelling_;
      newer = std::max(newer, newer_epoch_);
      for (auto it = old_links_.begin(); it != old_links_.end();) {
        if ((*it)->installer_ended) {
          ended.push_back(*it);
          it = old_links_.erase(it);
        } else {
          ++it;
        }
      }
    }
    for (auto& link : ended) link->installer.join();
    if (on_silent != nullptr) {
      for (const Member& member : silent) on_silent(member);
    }
    if (newer > options_.epoch.value()) Superseded(newer);
    if (cancel) FinishCancel();
  }
}

absl::Status Runtime::WaitForServers(absl::Duration timeout) {
  const absl::Time until = absl::Now() + timeout;
  MutexLock lock(&mutex_);
  while (fatal_.ok() && membership_.Count(pb::ROLE_PSSERVER) < options_.servers) {
    if (absl::Now() >= until) {
      return absl::DeadlineExceededError(
          absl::StrCat(membership_.Count(pb::ROLE_PSSERVER), " of ", options_.servers,
                       " parameter servers have registered at ", server_->address(), " within ",
                       absl::FormatDuration(timeout), "; start them with --coordinator=", server_->address()));
    }
    changed_.WaitFor(&mutex_, until - absl::Now());
  }
  return fatal_;
}

absl::Status Runtime::WaitForWorkers(size_t count, absl::Duration timeout) {
  const absl::Time until = absl::Now() + timeout;
  MutexLock lock(&mutex_);
  while (fatal_.ok() && links_.size() < count) {
    if (absl::Now() >= until) {
      return absl::DeadlineExceededError(
          absl::StrCat(links_.size(), " of ", count, " workers have registered at ", server_->address(), " within ",
                       absl::FormatDuration(timeout), "; start them with --coordinator=", server_->address()));
    }
    changed_.WaitFor(&mutex_, until - absl::Now());
  }
  return fatal_;
}

std::vector<Member> Runtime::Servers() const {
  MutexLock lock(&mutex_);
  std::vector<Member> servers;
  for (const Member& member : membership_.All()) {
    if (member.role == pb::ROLE_PSSERVER) servers.push_back(member);
  }
  return servers;
}

std::vector<std::shared_ptr<WorkerLink>> Runtime::Workers() const {
  MutexLock lock(&mutex_);
  std::vector<std::shared_ptr<WorkerLink>> workers;
  for (const auto& [id, link] : links_) workers.push_back(link);
  return workers;
}

void Runtime::ChangeCatalog(const std::function<void(Catalog&)>& change) {
  MutexLock lock(&mutex_);
  change(catalog_);
  queue_.RequireVersion(catalog_.routing_version());
  changed_.SignalAll();
}

RuntimeStats Runtime::Stats() const {
  MutexLock lock(&mutex_);
  RuntimeStats stats = stats_;
  stats.workers_ready = links_.size();
  stats.servers = membership_.Count(pb::ROLE_PSSERVER);
  stats.unfinished = queue_.unfinished();
  return stats;
}

void Runtime::SetPhase(std::string phase) {
  MutexLock lock(&mutex_);
  phase_ = std::move(phase);
}

pb::GetStatusReply Runtime::Status() const {
  MutexLock lock(&mutex_);
  pb::GetStatusReply reply;
  reply.set_job_name(options_.job_name);
  reply.set_job(options_.job.value());
  reply.set_epoch(options_.epoch.value());
  reply.set_phase(phase_);
  const absl::Time now = absl::Now();
  for (const Member& member : membership_.All()) {
    pb::MemberStatus& status = *reply.add_members();
    status.set_role(member.role);
    status.set_index(member.index);
    status.set_address(member.address);
    status.set_pid(member.pid);
    status.set_heartbeat_age_ms(static_cast<uint64_t>(absl::ToInt64Milliseconds(now - member.last_heartbeat)));
    status.set_state("ready");
    if (const auto it = links_.find(WorkerId(member.index)); member.role == pb::ROLE_WORKER && it != links_.end()) {
      status.set_functions(it->second->functions_done);
      status.set_steps(it->second->steps_done);
      status.set_in_flight(static_cast<uint32_t>(queue_.InFlight(it->first)));
      if (it->second->installed_version < catalog_.version()) status.set_state("installing");
    }
  }
  reply.set_functions_queued(queue_.queued());
  reply.set_functions_running(queue_.running());
  reply.set_functions_finished(stats_.functions);
  reply.set_steps(stats_.steps);
  reply.set_samples(stats_.samples);
  reply.set_seconds(SecondsUp());
  reply.set_samples_per_second(static_cast<double>(stats_.samples) / std::max(1e-9, SecondsUp()));
  return reply;
}

}  // namespace mu
