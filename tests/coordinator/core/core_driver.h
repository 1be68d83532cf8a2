// Drives a core as a shell does, in virtual time, and writes down what it wants.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/error_kind.h"
#include "common/base/version.h"
#include "coordinator/core/core.h"
#include "tests/testing/matchers.h"

namespace mu::testing {

class CoreDriver {
 public:
  static constexpr absl::Duration kHeartbeat = absl::Seconds(1);
  static constexpr absl::Duration kTimeout = absl::Seconds(10);

  explicit CoreDriver(uint32_t servers = 1, CoordinatorEpoch epoch = CoordinatorEpoch(1))
      : core({.job = JobId(7),
              .epoch = epoch,
              .servers = servers,
              .in_flight = 2,
              .heartbeat = kHeartbeat,
              .timeout = kTimeout,
              .started = absl::UnixEpoch()}),
        servers_(servers) {}

  // What the core wants then: "start 1 on 0 from 0; ...". Answers to heartbeats are left out.
  std::string Step(Event event) {
    Actions actions;
    if (const auto* changed = std::get_if<event::CatalogChanged>(&event)) catalog_ = *changed;
    core.Step(now, std::move(event), &actions);
    std::vector<std::string> texts;
    for (const Action& action : actions) {
      std::string text = std::visit([](const auto& a) { return Text(a); }, action);
      if (!text.empty()) texts.push_back(std::move(text));
      if (const auto* start = std::get_if<action::Start>(&action)) {
        runs[start->start.function] = start->start;
        started_.insert(start->start.run);
        ExpectCurrent(start->start);
      }
      if (const auto* stop = std::get_if<action::StopRun>(&action)) {
        EXPECT_TRUE(started_.contains(stop->run)) << "run " << stop->run.value();
      }
    }
    if (!core.closed() && !core.ended().ok() && !std::exchange(ended_, true))
      texts.push_back(absl::StrCat("end ", Code(core.ended())));
    last = std::move(actions);
    if (files_are_there) {
      for (const Action& action : Actions(last)) {
        const auto* const look = std::get_if<action::LookAtFiles>(&action);
        if (look == nullptr) continue;
        texts.pop_back();  // it comes last
        if (std::string then = Step(event::FilesSeen{look->generation}); !then.empty())
          texts.push_back(std::move(then));
      }
    }
    return absl::StrJoin(texts, "; ");
  }
  // The newest action of a kind in the last step.
  template <typename A>
  const A& Last() const {
    const A* found = nullptr;
    for (const Action& action : last) {
      if (const A* a = std::get_if<A>(&action)) found = a;
    }
    EXPECT_NE(found, nullptr);
    static const A kNone = {};
    return found == nullptr ? kNone : *found;
  }

  std::string Join(pb::Role role, uint64_t incarnation, int index, int64_t pid = 0,
                   bool may_move = false) {
    event::Register join;
    join.request.set_role(role);
    join.request.set_incarnation(incarnation);
    join.request.set_index(index);
    join.request.set_may_move(may_move);
    join.request.set_address("here:1");
    join.request.set_protocol(kProtocol);
    join.request.set_pid(pid == 0 ? static_cast<int64_t>(incarnation) : pid);
    return Step(std::move(join));
  }
  // `moved`: of a server that is busy.
  void Beat(pb::Role role, uint64_t incarnation, uint32_t index,
            std::optional<uint64_t> moved = std::nullopt) {
    event::Heartbeat beat;
    beat.request.set_job(7);
    beat.request.set_role(role);
    beat.request.set_incarnation(incarnation);
    beat.request.set_index(index);
    beat.request.set_busy(moved.has_value());
    beat.request.set_moved_bytes(moved.value_or(0));
    Step(std::move(beat));
  }
  std::string Routing(uint64_t version, uint64_t generation) {
    return Step(
        event::CatalogChanged{version, version, Generation(generation), 1, {InstallPart{}}});
  }
  // A function is created.
  std::string Define(uint64_t function) {
    event::CatalogChanged changed = catalog_;
    ++changed.version;
    changed.parts = {{InstallPart::Kind::kFunction, function}};
    return Step(std::move(changed));
  }
  // The part that is under way to the worker is there, or not.
  std::string Installed(uint32_t worker, uint64_t incarnation,
                        absl::Status status = absl::OkStatus()) {
    return Step(event::Installed{WorkerId(worker), Incarnation(incarnation),
                                 CallError::Of(std::move(status))});
  }
  std::string Want(uint64_t task, ServerTask what) {
    return Step(event::TaskWanted{TaskId(task), std::move(what)});
  }
  // Servers 100, 101, ... in the first generation, workers 0, 1, ... with incarnations 10, 11, ...,
  // ready.
  void Serve(uint32_t workers, bool recovery = true) {
    if (recovery) Step(event::EnableRecovery{});
    for (uint32_t s = 0; s < servers(); ++s) Join(pb::ROLE_PSSERVER, 100 + s, static_cast<int>(s));
    Step(event::CatalogChanged{.parameters = 1});
    Want(1, {});
    const action::Configure configure = Last<action::Configure>();
    Step(event::Configured{configure.attempt});
    Routing(1, configure.generation.value());
    for (uint32_t w = 0; w < workers; ++w) {
      Join(pb::ROLE_WORKER, 10 + w, static_cast<int>(w));
      Installed(w, 10 + w);
    }
  }
  std::string Schedule(uint32_t steps = 1) {
    FunctionWork work;
    work.name = "train";
    work.fingerprint = Fingerprint(5);
    work.steps = steps;
    work.trains = work.updates = true;
    return Step(event::Schedule{std::move(work)});
  }
  std::string Result(uint64_t function, uint32_t step, uint32_t samples = 4) {
    event::Results results = {.start = runs.at(FunctionId(function))};
    results.steps.push_back({.step = step, .samples = samples});
    return Step(std::move(results));
  }
  std::string Ended(uint64_t function, absl::Status status = absl::OkStatus()) {
    return Step(event::RunEnded{runs.at(FunctionId(function)), CallError::Of(std::move(status))});
  }
  std::string Restored(uint64_t generation) {
    return Step(event::Restored{.generation = Generation(generation),
                                .updates = std::vector<uint64_t>(servers())});
  }
  std::string Leave(pb::Role role, uint64_t incarnation, uint32_t index, uint64_t call) {
    event::Leave leave = {.call = CallId(call)};
    leave.request.set_role(role);
    leave.request.set_index(index);
    leave.request.set_incarnation(incarnation);
    leave.request.set_reason("SIGTERM");
    return Step(std::move(leave));
  }
  std::string TickAfter(absl::Duration passed) {
    now += passed;
    return Step(event::Tick{});
  }
  // When the core wants to ask again for what has failed so often in a row. All members are alive.
  std::string TickAfterFailures(int failures) {
    for (const Member& member : core.membership().All())
      Beat(member.role, member.incarnation.value(), member.index);
    const absl::Duration wait = core.alarm() - now;
    const absl::Duration longest =
        std::min(RetryDelays::kFirst * (1 << (failures - 1)), RetryDelays::kLongest);
    EXPECT_GE(wait, longest / 2) << failures;
    EXPECT_LE(wait, longest) << failures;
    return TickAfter(wait);
  }
  uint32_t servers() const { return servers_; }

  Core core;
  absl::Time now = absl::UnixEpoch();
  std::map<FunctionId, StartRun> runs;  // the newest of each function
  Actions last;
  bool files_are_there = true;  // of checkpoints: looks need no answer

 private:
  // Shells ask the core for what they start.
  void ExpectCurrent(const StartRun& start) const {
    const FunctionQueue::Function* const function = core.queue().Find(start.function);
    ASSERT_NE(function, nullptr) << "function " << start.function.value() << " has ended";
    EXPECT_EQ(function->run, start.run) << "function " << start.function.value();
  }

  const uint32_t servers_;
  event::CatalogChanged catalog_;  // the newest
  std::set<RunId> started_;
  bool ended_ = false;  // `core` has said so
  static std::string Name(const Member& member) {
    return absl::StrCat(member.role == pb::ROLE_WORKER ? "worker " : "server ", member.index);
  }
  static std::string Code(const absl::Status& status) {
    return absl::StatusCodeToString(status.code());
  }
  static std::string Text(const action::AnswerRegister& a) {
    return a.status.ok() ? "" : absl::StrCat("refuse ", Code(a.status));
  }
  static std::string Text(const action::AnswerHeartbeat&) { return ""; }
  static std::string Text(const action::AnswerLeave& a) {
    return absl::StrCat("goodbye ", a.call.value());
  }
  static std::string Text(const action::MemberJoined& a) {
    return absl::StrCat(Name(a.member), " joins");
  }
  static std::string Text(const action::MemberLost& a) {
    return absl::StrCat(Name(a.member), " ", a.kind);
  }
  static std::string Text(const action::Install& a) {
    return absl::StrCat("install ", Describe(a.part), " on ", a.worker.value());
  }
  static std::string Text(const action::MakePlan& a) {
    return absl::StrCat("plan epoch ", a.epoch);
  }
  static std::string Text(const action::ScanFiles& a) {
    return absl::StrCat("scan ", absl::StrJoin(a.files, " "), " on ", a.worker.value());
  }
  static std::string Text(const action::FileCounts& a) { return absl::StrCat("file ", a.file); }
  static std::string Text(const action::ScanDone& a) {
    return absl::StrCat("scanned ", Code(a.status));
  }
  static std::string Text(const action::LookAtFiles& a) {
    return absl::StrCat("look in ", a.generation.value());
  }
  static std::string Text(const action::CheckpointBad& a) {
    return a.task == TaskId() ? absl::StrCat("bad ", a.point.value())
                              : absl::StrCat("bad for ", a.task.value());
  }
  static std::string Text(const action::Scheduled& a) {
    return absl::StrCat("scheduled ", a.function.value());
  }
  static std::string Text(const action::Start& a) {
    return absl::StrCat("start ", a.start.function.value(), " on ", a.start.worker.value(),
                        " from ", a.start.first_step);
  }
  static std::string Text(const action::StopRun& a) {
    return absl::StrCat("stop run ", a.run.value(), " on ", a.worker.value());
  }
  static std::string Text(const action::Deliver& a) {
    return absl::StrCat("deliver ", a.function.value());
  }
  static std::string Text(const action::KeepResult& a) {
    return absl::StrCat("keep ", a.function.value());
  }
  static std::string Text(const action::DeliverKept& a) {
    return absl::StrCat("deliver ", a.function.value());
  }
  static std::string Text(const action::CommitRound& a) {
    std::vector<std::string> steps;
    for (const RoundSet::Step& step : a.set.steps)
      steps.push_back(absl::StrCat(step.function.value(), " (", step.weight, ")"));
    return absl::StrCat("commit ", a.set.round, ": ", absl::StrJoin(steps, ", "));
  }
  static std::string Text(const action::Finish& a) {
    return absl::StrCat("finish ", a.function.value(), " ", Code(a.status));
  }
  static std::string Text(const action::CancelOnWorkers& a) {
    return absl::StrCat("cancel below ", a.below.value(), " in generation ", a.generation.value(),
                        " on ", a.workers.size());
  }
  static std::string Text(const action::FenceServers& a) {
    return absl::StrCat("fence below ", a.below.value(), " in generation ", a.generation.value());
  }
  static std::string Text(const action::Cancelled& a) {
    return absl::StrCat("cancelled ", Code(a.error));
  }
  static std::string Text(const action::GroupFailed& a) {
    return absl::StrCat("group ", a.group.value(), " failed ", Code(a.error));
  }
  static std::string Text(const action::LoadView& a) {
    return absl::StrCat("load view ", a.view.value(), " in ", a.generation.value());
  }
  static std::string Text(const action::DropView& a) {
    return absl::StrCat("drop view ", a.view.value());
  }
  static std::string Text(const action::ViewUnused& a) {
    return absl::StrCat("view ", a.view.value(), " unused");
  }
  static std::string Text(const action::InterruptServers&) { return "interrupt"; }
  static std::string Text(const action::Paused&) { return "pause"; }
  static std::string Text(const action::Restore& a) {
    std::vector<std::string> servers;
    for (const bool keep : a.keep)
      servers.push_back(absl::StrCat(keep ? "keep " : "restore ", servers.size()));
    return absl::StrCat("round ", a.generation.value(), " from ", a.checkpoint.value(), ": ",
                        absl::StrJoin(servers, ", "));
  }
  static std::string Text(const action::TaskDone& a) {
    return absl::StrCat("done ", a.task.value(), " ", Code(a.status));
  }
  static std::string Text(const action::Configure& a) {
    return absl::StrCat(a.reset ? "reset" : "configure", " in ", a.generation.value());
  }
  static std::string Text(const action::Load& a) {
    return absl::StrCat("load for ", a.task.value(), " in ", a.generation.value());
  }
  static std::string Text(const action::UseRouting&) { return "use routing"; }
  static std::string Text(const action::Serving& a) {
    return absl::StrCat("serve in ", a.generation.value());
  }
  static std::string Text(const action::Save& a) {
    return absl::StrCat("save ", a.checkpoint.value());
  }
  static std::string Text(const action::WriteManifest&) { return "write manifest"; }
  static std::string Text(const action::Committed& a) {
    return absl::StrCat("committed ", a.checkpoint.value());
  }
  static std::string Text(const action::Aborted& a) {
    return absl::StrCat("aborted ", a.checkpoint.value());
  }
  static std::string Text(const action::Assign& a) {
    return absl::StrCat("assign ", a.place.value());
  }
  // Of what is only told to the log: what is repeated.
  static std::string Text(const action::Note& a) {
    return absl::EndsWith(a.text, " will run again") ? a.text : "";
  }
};

inline absl::Status MachineFault() { return absl::UnavailableError("gone"); }
// What a worker says that has been sent something wrong.
inline absl::Status FoundWrong() {
  return WithKind(absl::InvalidArgumentError("wrong"), pb::ERROR_USER, pb::ROLE_WORKER);
}

inline absl::Status Typed(pb::ErrorKind kind, pb::Role role = pb::ROLE_WORKER, uint32_t index = 0) {
  pb::ErrorDetail detail;
  detail.set_kind(kind);
  detail.set_role(role);
  detail.set_index(index);
  return WithDetail(absl::FailedPreconditionError("typed"), detail);
}

// The first server says how full its memory of applied pushes is.
inline std::string ReportMemory(CoreDriver& d, uint64_t percent) {
  event::Heartbeat beat;
  beat.request.set_job(7);
  beat.request.set_role(pb::ROLE_PSSERVER);
  beat.request.set_incarnation(100);
  beat.request.set_applied_bytes(percent);
  beat.request.set_most_applied_bytes(100);
  return d.Step(beat);
}

// The newest attempt at what is asked of servers that the last event began.
inline uint64_t Attempt(const CoreDriver& d) {
  uint64_t attempt = 0;
  for (const Action& action : d.last) {
    if (const auto* a = std::get_if<action::Assign>(&action)) attempt = a->attempt;
    if (const auto* a = std::get_if<action::Configure>(&action)) attempt = a->attempt;
    if (const auto* a = std::get_if<action::Load>(&action)) attempt = a->attempt;
  }
  return attempt;
}

}  // namespace mu::testing
