// What histories have seen: each event that the coordinator's core was told, each action that it or
// a worker's core wanted, what else happened in workers and what servers' cores said, each kind of
// error and each fault, by the number of histories.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "coordinator/core/action.h"
#include "coordinator/core/event.h"
#include "proto/error.pb.h"
#include "tests/sim/scenario.h"
#include "worker/core/action.h"

namespace mu::sim {

// What a worker comes to now and then.
enum class WorkerMoment : uint8_t {
  kRegistrationAwaited,  // by a request
  kPredecessorAwaited,   // by a run
  kPredecessorGivenUp,
  kCompiledInVain,  // for an epoch that is over
  kCallRepeated,    // since the servers have moved
  kCallGivenUp,     // since a server does not answer
  kPushNotBegun,    // of a run that was stopped after its step had pulled
  kResultsGrouped,  // several in one message
};
inline constexpr int kWorkerMoments = static_cast<int>(WorkerMoment::kResultsGrouped) + 1;

// What a server's core says; see the names in coverage.cc.
enum class ServerStep : uint8_t {
  kPushRepeated,
  kPushWaitsForFirst,
  kPushPartlyInherited,
  kPushWhollyInherited,
  kPushRefusedAtGate,
  kPushNotAcknowledged,
  kPushWaitsForCut,
  kCutWaits,
  kFenceWaits,
  kSaveWaits,
  kSaveShared,
  kSaveEnded,
  kRestoreVerifies,
  kRestoreWaits,
  kRestoreRepeated,
  kRestoreKeptAgain,
  kRestoreFails,
  kPlacedAnew,
  kHangs  // and is lost for that
};
inline constexpr int kServerSteps = static_cast<int>(ServerStep::kHangs) + 1;

// Of one history, a bit each.
struct Seen {
  uint64_t events = 0, actions = 0, errors = 0, faults = 0, server = 0;
  uint64_t worker_actions = 0, worker_moments = 0;

  void Saw(const Event& event) {
    events |= uint64_t{1} << event.index();
    if (const auto* ended = std::get_if<event::RunEnded>(&event))
      errors |= uint64_t{1} << static_cast<int>(ended->error.kind);
  }
  void Saw(const Action& action) { actions |= uint64_t{1} << action.index(); }
  void Saw(const WorkerAction& action) { worker_actions |= uint64_t{1} << action.index(); }
  void Saw(WorkerMoment moment) { worker_moments |= uint64_t{1} << static_cast<int>(moment); }
  void Saw(Fault fault) { faults |= uint64_t{1} << static_cast<int>(fault); }
  void Saw(ServerStep step) { server |= uint64_t{1} << static_cast<int>(step); }
};

class Coverage {
 public:
  void Add(const Seen& seen);
  void Add(const Coverage& other);
  struct Row {
    std::string kind;  // event, action, worker, server, end of a run, fault
    std::string name;
    uint64_t histories = 0;
  };
  // What a history of the simulation can show; the rest is named by Unreachable().
  std::vector<Row> Rows() const;
  // Events and actions that the simulation does not have, each with the reason.
  static const std::vector<std::pair<std::string, std::string>>& Unreachable();

 private:
  std::array<uint64_t, 64> events_{}, actions_{}, errors_{}, faults_{}, server_{},
      worker_actions_{}, worker_moments_{};
};

}  // namespace mu::sim
