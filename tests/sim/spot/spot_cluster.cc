#include "tests/sim/spot/spot_cluster.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <queue>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/hash.h"
#include "common/base/version.h"
#include "coordinator/core/core.h"

namespace mu::sim {
namespace {

constexpr uint64_t kJob = 7;
constexpr absl::Duration kMessage = absl::Milliseconds(1);  // and what else takes no time

class SpotCluster {
 public:
  explicit SpotCluster(const SpotScenario& scenario)
      : scenario_(scenario),
        random_(HashCombine(scenario.seed, 0x73706f74)),
        core_({.job = JobId(kJob),
               .epoch = CoordinatorEpoch(1),
               .servers = scenario.servers,
               .heartbeat = scenario.heartbeat,
               .timeout = scenario.timeout,
               .started = now_}),
        workers_(scenario.workers),
        servers_(scenario.servers) {}

  SpotOutcome Run();

 private:
  struct Machine {
    pb::Role role = pb::ROLE_WORKER;
    uint32_t index = 0;
    uint64_t incarnation = 0;
    bool up = false;
    absl::Time since;
  };
  struct Worker : Machine {
    std::deque<StartRun> runs;  // the first is being executed
    bool stalled = false;       // at the end of its step, where servers do not answer
  };
  struct Server : Machine {
    // What it has loaded or is loading, until something changes it.
    CheckpointNumber loads;
    uint64_t loads_as = 0;  // this incarnation
    absl::Time loaded_at;
  };
  struct Later {
    absl::Time at;
    uint64_t order = 0;
    std::function<void()> run;
    bool operator<(const Later& other) const {  // for a queue that has the largest first
      return at != other.at ? at > other.at : order > other.order;
    }
  };

  void After(absl::Duration delay, std::function<void()> run) {
    later_.push({now_ + delay, ++order_, std::move(run)});
  }
  void Step(Event event);
  void Tick();
  bool ServersUp() const {
    return serving_ &&
           std::all_of(servers_.begin(), servers_.end(), [](const Server& s) { return s.up; });
  }

  // Machines.
  void Start(Machine* machine);
  void Register(Machine* machine, uint64_t incarnation);
  void Heartbeat(Machine* machine, uint64_t incarnation);
  void Lose(Machine* machine);
  void ConnectionBroken(uint32_t worker, uint64_t incarnation);

  // Steps.
  void Execute(Worker* worker);
  void StepEnds(uint32_t worker, uint64_t incarnation, RunId run);
  void Feed();
  void Checkpoint();

  // What the core wants. The rest tells of what has happened, or answers who does not ask.
  void Do(const action::AnswerRegister& a) {
    const auto asked = asking_.extract(a.call);
    if (asked.empty() || a.status.ok()) return;
    After(absl::Milliseconds(500),
          [this, who = asked.mapped()] { Register(who.first, who.second); });
  }
  void Do(const action::Install& a) {
    const uint64_t incarnation = workers_[a.worker.value()].incarnation;
    After(scenario_.install, [this, a, incarnation] {
      Step(event::Installed{a.worker, Incarnation(incarnation)});
    });
  }
  void Do(const action::Start& a) {
    Worker& worker = workers_[a.start.worker.value()];
    if (!worker.up) {
      return After(100 * kMessage, [this, index = worker.index, as = worker.incarnation] {
        ConnectionBroken(index, as);
      });
    }
    worker.runs.push_back(a.start);
    if (worker.runs.size() == 1) Execute(&worker);
  }
  void Do(const action::StopRun& a);
  void Do(const action::Finish& a) { MU_CHECK(a.status.ok()); }
  void Do(const action::Configure& a) {
    generation_ = a.generation;
    After(kMessage, [this, attempt = a.attempt] { Step(event::Configured{attempt, {}}); });
  }
  void Do(const action::UseRouting&) {
    ++catalog_;
    Step(event::CatalogChanged{catalog_, catalog_, generation_, 1, {InstallPart{}}});
  }
  void Do(const action::Paused&) { serving_ = false; }
  void Do(const action::Restore& a);
  void Do(const action::Serving&);
  void Do(const action::Save& a);
  void Do(const action::WriteManifest& a) {
    After(kMessage, [this, number = a.checkpoint] {
      Step(event::ManifestWritten{number, absl::OkStatus()});
    });
  }
  void Do(const action::Committed&) { ++outcome_.checkpoints; }
  void Do(const action::TaskDone& a) {
    if (a.task == saving_) saving_ = TaskId();
  }
  template <typename Told>
  void Do(const Told&) {}

  // Whether a call that all servers execute is answered: these processes are there at its end.
  std::vector<uint64_t> ServersNow() const {
    std::vector<uint64_t> incarnations;
    for (const Server& server : servers_)
      incarnations.push_back(server.up ? server.incarnation : 0);
    return incarnations;
  }

  const SpotScenario scenario_;
  SplitMix random_;
  absl::Time now_ = absl::UnixEpoch();
  Core core_;
  std::vector<Worker> workers_;
  std::vector<Server> servers_;
  std::priority_queue<Later> later_;
  uint64_t order_ = 0, next_incarnation_ = 0, next_call_ = 0, catalog_ = 0;
  std::map<CallId, std::pair<Machine*, uint64_t>> asking_;
  std::deque<Event> events_;
  bool stepping_ = false, serving_ = false;
  absl::Time alarm_ = absl::InfiniteFuture();
  Generation generation_;
  TaskId last_task_, saving_;
  std::optional<absl::Time> began_;
  SpotOutcome outcome_;
};

void SpotCluster::Step(Event event) {
  events_.push_back(std::move(event));
  if (std::exchange(stepping_, true)) return;
  while (!events_.empty()) {
    Actions actions;
    Event next = std::move(events_.front());
    events_.pop_front();
    core_.Step(now_, std::move(next), &actions);
    MU_CHECK(core_.ended().ok());
    for (const Action& action : actions) std::visit([this](const auto& a) { Do(a); }, action);
  }
  stepping_ = false;
  if (const absl::Time alarm = core_.alarm(); alarm < alarm_) {
    alarm_ = alarm;
    After(std::max(kMessage, alarm - now_), [this] {
      alarm_ = absl::InfiniteFuture();
      Step(event::Tick{});
    });
  }
}

void SpotCluster::Tick() {
  Step(event::Tick{});
  After(scenario_.heartbeat, [this] { Tick(); });
}

void SpotCluster::Start(Machine* machine) {
  machine->incarnation = ++next_incarnation_;
  machine->up = true;
  machine->since = now_;
  Register(machine, machine->incarnation);
  After(scenario_.heartbeat,
        [this, machine, as = machine->incarnation] { Heartbeat(machine, as); });
  if (scenario_.losses_per_hour <= 0) return;
  // Machines do not grow old.
  const double hours = -std::log(1 - random_.Unit()) / scenario_.losses_per_hour;
  After(absl::Hours(hours), [this, machine] { Lose(machine); });
}

void SpotCluster::Register(Machine* machine, uint64_t incarnation) {
  if (!machine->up || machine->incarnation != incarnation) return;
  event::Register event = {.call = CallId(++next_call_)};
  event.request.set_role(machine->role);
  event.request.set_index(static_cast<int>(machine->index));
  event.request.set_incarnation(incarnation);
  event.request.set_pid(static_cast<int64_t>(incarnation));
  event.request.set_address("here:1");
  event.request.set_protocol(kProtocol);
  asking_[event.call] = {machine, incarnation};
  Step(std::move(event));
}

void SpotCluster::Heartbeat(Machine* machine, uint64_t incarnation) {
  if (!machine->up || machine->incarnation != incarnation) return;
  event::Heartbeat event = {.call = CallId(++next_call_)};
  event.request.set_job(kJob);
  event.request.set_role(machine->role);
  event.request.set_index(machine->index);
  event.request.set_incarnation(incarnation);
  Step(std::move(event));
  After(scenario_.heartbeat, [this, machine, incarnation] { Heartbeat(machine, incarnation); });
}

void SpotCluster::Lose(Machine* machine) {
  machine->up = false;
  const bool is_worker = machine->role == pb::ROLE_WORKER;
  ++(is_worker ? outcome_.workers_lost : outcome_.servers_lost);
  if (is_worker) {
    outcome_.workers_up += now_ - std::max(machine->since, began_.value_or(now_));
    After(100 * kMessage, [this, index = machine->index, as = machine->incarnation] {
      ConnectionBroken(index, as);
    });
    Worker& worker = workers_[machine->index];
    worker.runs.clear();
    worker.stalled = false;
  }
  After(scenario_.replacement, [this, machine] { Start(machine); });
}

// The calls of its runs end. Of a worker without runs the heartbeats tell.
void SpotCluster::ConnectionBroken(uint32_t index, uint64_t incarnation) {
  const WorkerId id(index);
  const auto known = core_.workers().find(id);
  if (known == core_.workers().end() ||
      known->second.member.incarnation != Incarnation(incarnation))
    return;
  const std::vector<FunctionId> running = core_.queue().RunningOn(id);
  if (running.empty()) return;
  const RunId run = core_.queue().Find(running.front())->run;
  Step(event::RunEnded{{running.front(), run, id},
                       CallError::Of(absl::UnavailableError("the connection broke"))});
}

void SpotCluster::Execute(Worker* worker) {
  worker->stalled = false;
  After(scenario_.step, [this, index = worker->index, as = worker->incarnation,
                         run = worker->runs.front().run] { StepEnds(index, as, run); });
}

void SpotCluster::StepEnds(uint32_t index, uint64_t incarnation, RunId run) {
  Worker& worker = workers_[index];
  if (worker.incarnation != incarnation || worker.runs.empty() || worker.runs.front().run != run)
    return;
  if (!ServersUp()) {
    worker.stalled = true;
    return;
  }
  const StartRun start = worker.runs.front();
  worker.runs.pop_front();
  if (!worker.runs.empty()) Execute(&worker);
  event::Results results = {.start = start, .steps = {}};
  StepOutcome outcome = {.step = start.first_step, .samples = 1, .repeated = false};
  outcome.updates.assign(scenario_.servers, 1);
  outcome.inherited.assign(scenario_.servers, 0);
  results.steps.push_back(std::move(outcome));
  Step(std::move(results));
  Step(event::RunEnded{start, {}});
  Feed();
}

void SpotCluster::Do(const action::StopRun& a) {
  Worker& worker = workers_[a.worker.value()];
  const auto run = std::find_if(worker.runs.begin(), worker.runs.end(),
                                [&](const StartRun& start) { return start.run == a.run; });
  if (!worker.up || run == worker.runs.end()) return;
  const StartRun start = *run;
  const bool first = run == worker.runs.begin();
  worker.runs.erase(run);
  if (first && !worker.runs.empty()) Execute(&worker);
  After(kMessage, [this, start] {
    Step(event::RunEnded{start, CallError::Of(absl::CancelledError("stopped"))});
  });
}

void SpotCluster::Do(const action::Restore& a) {
  generation_ = a.generation;
  absl::Time ready = now_ + kMessage;
  for (Server& server : servers_) {
    if (a.keep[server.index] || a.checkpoint == kInitialValues) continue;
    if (server.loads != a.checkpoint || server.loads_as != server.incarnation) {
      server.loads = a.checkpoint;
      server.loads_as = server.incarnation;
      server.loaded_at = now_ + scenario_.restore;
    }
    ready = std::max(ready, server.loaded_at);
  }
  After(ready - now_, [this, generation = a.generation, asked = ServersNow()] {
    if (asked != ServersNow()) return;  // the loss will be noticed
    Step(event::Restored{.generation = generation,
                         .error = {},
                         .updates = std::vector<uint64_t>(scenario_.servers),
                         .from = ""});
  });
}

void SpotCluster::Do(const action::Serving&) {
  serving_ = true;
  if (!began_.has_value()) began_ = now_;
  for (Server& server : servers_) server.loads = CheckpointNumber();
  // What has waited at its end goes on: its pushes are of the generation before.
  for (Worker& worker : workers_) {
    if (worker.up && worker.stalled && !worker.runs.empty()) Execute(&worker);
  }
}

void SpotCluster::Do(const action::Save& a) {
  After(scenario_.save, [this, number = a.checkpoint, asked = ServersNow()] {
    if (asked == ServersNow()) Step(event::Saved{number, absl::OkStatus()});
  });
}

void SpotCluster::Feed() {
  if (!began_.has_value() || now_ > *began_ + scenario_.lasts) return;
  while (core_.queue().queued() < 2 * scenario_.workers) {
    FunctionWork work;
    work.fingerprint = Fingerprint(5);
    work.trains = work.updates = true;
    Step(event::Schedule{std::move(work)});
  }
}

void SpotCluster::Checkpoint() {
  After(scenario_.checkpoint_every, [this] { Checkpoint(); });
  if (saving_ != TaskId()) return;
  saving_ = last_task_ = last_task_.Next();
  Step(event::TaskWanted{saving_, {.kind = ServerTask::Kind::kSave}});
}

SpotOutcome SpotCluster::Run() {
  Step(event::EnableRecovery{scenario_.recovery});
  Step(event::CatalogChanged{.parameters = 1});
  last_task_ = last_task_.Next();
  Step(event::TaskWanted{last_task_, {}});
  for (uint32_t i = 0; i < scenario_.servers; ++i) {
    servers_[i].role = pb::ROLE_PSSERVER;
    servers_[i].index = i;
    Start(&servers_[i]);
  }
  for (uint32_t i = 0; i < scenario_.workers; ++i) {
    workers_[i].index = i;
    Start(&workers_[i]);
  }
  Tick();
  Checkpoint();
  while (!began_.has_value() || now_ < *began_ + scenario_.lasts || !core_.done()) {
    Later next = later_.top();
    later_.pop();
    now_ = next.at;
    next.run();
    if (!began_.has_value() && core_.servers_configured() && core_.serving()) {
      began_ = now_;
      serving_ = true;
    }
    Feed();
  }
  for (const Worker& worker : workers_) {
    if (worker.up) outcome_.workers_up += now_ - std::max(worker.since, *began_);
  }
  outcome_.took = now_ - *began_;
  outcome_.functions = core_.queue().next_id().value() - 1;  // repeats end more than once
  const double useful =
      static_cast<double>(outcome_.functions) * absl::ToDoubleSeconds(scenario_.step);
  outcome_.efficiency = useful / absl::ToDoubleSeconds(outcome_.workers_up);
  outcome_.of_all = useful / (scenario_.workers * absl::ToDoubleSeconds(outcome_.took));
  return outcome_;
}

}  // namespace

SpotOutcome RunSpot(const SpotScenario& scenario) { return SpotCluster(scenario).Run(); }

}  // namespace mu::sim
