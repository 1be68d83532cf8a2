// The coordinator's figures for /metrics, and where the figures of its daemons are.
#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/strings/strip.h"
#include "coordinator/cluster/runtime.h"

namespace mu {
namespace {

struct Costs {
  double steps = 0;
  double samples = 0;
  double updates = 0;
};

Costs CostsOf(const FailureLog& log) {
  const UnlistedFailures& unlisted = log.unlisted();
  Costs costs{.steps = static_cast<double>(unlisted.steps_repeated),
              .samples = static_cast<double>(unlisted.samples_repeated),
              .updates = static_cast<double>(unlisted.updates_rolled_back)};
  for (const MemberFailure& failure : log.failures()) {
    costs.steps += static_cast<double>(failure.steps_repeated);
    costs.samples += static_cast<double>(failure.samples_repeated);
    costs.updates += static_cast<double>(failure.updates_rolled_back);
  }
  costs.steps += static_cast<double>(log.backup_runs().steps_repeated);
  costs.samples += static_cast<double>(log.backup_runs().samples_repeated);
  return costs;
}

}  // namespace

// Every member, for Prometheus' discovery of targets by HTTP. Its labels must not be those of any
// metric, or Prometheus renames the latter.
std::string Runtime::MetricTargets(const std::string& own) const {
  const pb::GetStatusReply status = Status();
  auto targets = nlohmann::ordered_json::array();
  const auto add = [&](absl::string_view http, const char* role, int64_t index) {
    const bool secure = absl::ConsumePrefix(&http, "https://");
    if (!secure) absl::ConsumePrefix(&http, "http://");
    nlohmann::ordered_json target;
    target["targets"] = {std::string(http)};
    target["labels"] = {{"__scheme__", secure ? "https" : "http"},
                        {"muster_job", status.job_name()},
                        {"muster_role", role}};
    if (index >= 0) target["labels"]["muster_index"] = std::to_string(index);
    targets.push_back(std::move(target));
  };
  add(own, "coordinator", -1);
  for (const pb::MemberStatus& member : status.members()) {
    if (member.http().empty()) continue;
    add(member.http(), member.role() == pb::ROLE_WORKER ? "worker" : "psserver", member.index());
  }
  return targets.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

void Runtime::AddMetrics(MetricList* list) const {
  const auto count = [](auto number) { return static_cast<double>(number); };
  loop_.Ask([&] {
    loop_.AssertHeld();
    const pb::GetStatusReply status = StatusNow();
    list->Gauge("muster_job_info", "1, with the job as labels", 1,
                {{"name", status.job_name()},
                 {"epoch", std::to_string(status.epoch())},
                 {"phase", status.phase()}});
    list->Counter("muster_coordinator_functions_finished_total", "Functions finished",
                  count(stats_.functions));
    list->Counter("muster_coordinator_runs_total", "Runs of functions, sent to workers",
                  count(stats_.runs));
    list->Counter("muster_coordinator_steps_total",
                  "Steps whose results have arrived at this coordinator",
                  count(stats_.steps - resumed_steps_));
    list->Counter("muster_coordinator_samples_total", "Records of these steps",
                  count(stats_.samples - resumed_samples_));
    list->Gauge("muster_job_steps", "Steps of the whole job, those of earlier coordinators too",
                count(status.steps()));
    list->Counter("muster_coordinator_bad_records_total", "Records left out by on_bad_record: skip",
                  count(stats_.bad_records));
    constexpr char kFunctions[] = "Functions that are not finished";
    list->Gauge("muster_coordinator_functions", kFunctions, count(core_.queue().queued()),
                {{"state", "queued"}});
    list->Gauge("muster_coordinator_functions", kFunctions, count(core_.queue().running()),
                {{"state", "running"}});
    list->Counter("muster_coordinator_functions_waited_total",
                  "Functions that waited for steps more than the bound on staleness before theirs",
                  count(core_.queue().waited_for_steps()));
    list->Gauge("muster_coordinator_uncovered_functions",
                "Finished functions that a lost server would make run again",
                count(core_.queue().uncovered()));
    list->Gauge("muster_coordinator_uncovered_bytes", "What keeping these takes, in bytes",
                count(core_.queue().uncovered_bytes()));
    list->Gauge("muster_coordinator_updates_paused",
                "1 while functions that change parameters wait for a checkpoint",
                core_.updates_paused() ? 1 : 0);
    list->Gauge("muster_coordinator_recovering", "1 while parameter servers are recovered",
                core_.serving() ? 0 : 1);

    constexpr char kWanted[] = "Daemons that the job was started for";
    list->Gauge("muster_coordinator_members_wanted", kWanted, count(options_.servers),
                {{"role", "psserver"}});
    list->Gauge("muster_coordinator_members_wanted", kWanted, count(options_.workers),
                {{"role", "worker"}});
    std::map<std::pair<std::string, std::string>, int> members = {{{"worker", "ready"}, 0},
                                                                  {{"psserver", "ready"}, 0}};
    std::map<std::string, uint64_t> silences;
    for (const pb::MemberStatus& member : status.members()) {
      const char* const role = member.role() == pb::ROLE_WORKER ? "worker" : "psserver";
      ++members[{role, member.state()}];
      silences[role] = std::max(silences[role], member.heartbeat_age_ms());
    }
    for (const auto& [who, number] : members) {
      list->Gauge("muster_coordinator_members", "Daemons that are members", count(number),
                  {{"role", who.first}, {"state", who.second}});
    }
    for (const auto& [role, ms] : silences) {
      list->Gauge("muster_coordinator_longest_silence_seconds",
                  "Time since the oldest of the members' last heartbeats", count(ms) / 1000,
                  {{"role", role}});
    }
    for (const auto& [id, leases] : core_.datasets()) {
      if (leases.shared() == nullptr) continue;
      const pb::DatasetPositionProto position = leases.shared()->Position();
      const MetricLabels labels = {{"dataset", position.name()}};
      list->Gauge("muster_coordinator_data_epoch", "Epoch that a dataset is in, from 0",
                  count(position.epoch()), labels);
      list->Gauge("muster_coordinator_batches_left", "Batches of this epoch not handed out yet",
                  count(leases.shared()->left()), labels);
      list->Gauge("muster_coordinator_leases_open", "Leases that were begun and have batches left",
                  count(position.begun_size()), labels);
    }

    const Costs costs = CostsOf(core_.failures());
    list->Counter("muster_coordinator_steps_repeated_total",
                  "Steps that ran again because of failures", costs.steps);
    list->Counter("muster_coordinator_samples_repeated_total", "Records of these steps",
                  costs.samples);
    // It is estimated while results are under way, and may then sink; a counter does not.
    rolled_back_shown_ = std::max(rolled_back_shown_, costs.updates);
    list->Counter("muster_coordinator_updates_rolled_back_total",
                  "Acknowledged updates that restored servers did not have", rolled_back_shown_);
    list->Counter("muster_coordinator_backup_runs_total",
                  "Runs on a second worker because the first one hung",
                  count(core_.failures().backup_runs().runs));
    if (last_checkpoint_seconds_ > 0) {
      list->Gauge("muster_coordinator_last_checkpoint_timestamp_seconds",
                  "When the last checkpoint was complete, in seconds since 1970",
                  last_checkpoint_seconds_);
      list->Gauge("muster_coordinator_last_checkpoint_bytes", "Files of that checkpoint, in bytes",
                  last_checkpoint_bytes_);
    }
  });
}

}  // namespace mu
