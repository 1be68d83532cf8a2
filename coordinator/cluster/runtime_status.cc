// What the cluster looks like: who is there, how far it is.
#include "absl/strings/str_cat.h"
#include "common/base/steady_now.h"
#include "coordinator/cluster/runtime.h"

namespace mu {

absl::Status Runtime::WaitFor(pb::Role role, size_t count, absl::Duration timeout) {
  absl::Status ended;
  size_t there = 0;
  const bool came = loop_.Await(
      [&] {
        loop_.AssertHeld();
        ended = core_.ended();
        there = core_.membership().Count(role);
        return !ended.ok() || there >= count;
      },
      SteadyNow() + timeout);
  if (came) return ended;
  return absl::DeadlineExceededError(absl::StrCat(
      there, " of ", count, role == pb::ROLE_WORKER ? " workers" : " parameter servers",
      " have registered at ", server_->address(), " within ", absl::FormatDuration(timeout),
      "; start them with --coordinator=", server_->address()));
}

std::vector<std::shared_ptr<WorkerLink>> Runtime::Workers() const {
  return loop_.Ask([&] {
    loop_.AssertHeld();
    std::vector<std::shared_ptr<WorkerLink>> workers;
    for (const auto& [id, link] : links_) workers.push_back(link);
    return workers;
  });
}

RuntimeCounts Runtime::CountsNow() const {
  RuntimeCounts counts = stats_;
  counts.updates_paused = core_.updates_paused();
  counts.workers_ready = links_.size();
  counts.servers = core_.membership().Count(pb::ROLE_PSSERVER);
  counts.unfinished = core_.queue().unfinished();
  return counts;
}

RuntimeStats Runtime::Stats() const {
  return loop_.Ask([this] {
    loop_.AssertHeld();
    RuntimeStats stats = stats_;
    static_cast<RuntimeCounts&>(stats) = CountsNow();
    stats.trained_samples = core_.trained_samples();
    stats.failures = core_.failures().failures();
    stats.unlisted_failures = core_.failures().unlisted();
    stats.without_progress_seconds = core_.failures().without_progress_seconds();
    stats.backup_runs = core_.failures().backup_runs();
    stats.staleness = core_.staleness();
    stats.rounds = core_.rounds();
    stats.waited_for_steps = core_.queue().waited_for_steps();
    stats.steps_to_repeat = core_.queue().Repeating().steps;
    stats.warnings = core_.warnings();
    return stats;
  });
}

void Runtime::SetPhase(std::string phase) {
  loop_.Ask([&] {
    loop_.AssertHeld();
    if (phase != phase_) phase_began_ = SteadyNow();
    phase_ = std::move(phase);
  });
}

pb::GetStatusReply Runtime::Status() const {
  return loop_.Ask([this] {
    loop_.AssertHeld();
    return StatusNow();
  });
}

pb::GetStatusReply Runtime::StatusNow() const {
  pb::GetStatusReply reply;
  reply.set_job_name(options_.job_name);
  reply.set_job(options_.job.value());
  reply.set_epoch(options_.epoch.value());
  reply.set_phase(phase_);
  const absl::Time now = SteadyNow();
  for (const Member& member : core_.membership().All()) {
    pb::MemberStatus& status = *reply.add_members();
    status.set_role(member.role);
    status.set_index(member.index);
    status.set_address(member.address);
    status.set_pid(member.pid);
    status.set_http(member.http);
    status.set_heartbeat_age_ms(
        static_cast<uint64_t>(absl::ToInt64Milliseconds(now - member.last_heartbeat)));
    const bool leaving = member.role == pb::ROLE_PSSERVER && core_.leaving(member.index);
    status.set_state(leaving ? "leaving" : "ready");
    if (const auto it = core_.workers().find(WorkerId(member.index));
        member.role == pb::ROLE_WORKER && it != core_.workers().end()) {
      status.set_functions(it->second.functions_done);
      status.set_steps(it->second.steps_done);
      status.set_in_flight(static_cast<uint32_t>(core_.queue().InFlight(it->first)));
      if (core_.installations().installed(it->first) < catalog_.version())
        status.set_state("installing");
      if (core_.IsAside(it->first)) status.set_state("set aside");
    }
  }
  reply.set_functions_queued(core_.queue().queued());
  reply.set_functions_running(core_.queue().running());
  reply.set_functions_finished(stats_.functions);
  // Those of evaluations are none of the job's, unless it does nothing else.
  const bool trains = core_.trained_steps() > 0;
  reply.set_steps(trains ? core_.trained_steps() : stats_.steps);
  reply.set_samples(trains ? core_.trained_samples() : stats_.samples);
  reply.set_seconds(absl::ToDoubleSeconds(now - phase_began_));
  // Of all that this coordinator has had read, evaluations as well, in the time that it took.
  const double seconds = absl::ToDoubleSeconds(now - first_scheduled_);
  if (seconds > 0) {
    reply.set_samples_per_second(static_cast<double>(stats_.samples - resumed_samples_) / seconds);
  }
  return reply;
}

}  // namespace mu
