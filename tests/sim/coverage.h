// What histories have seen: each event that the coordinator's core was told, each action that it
// wanted, each kind of error, each fault and what servers' cores said, by the number of histories.
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

namespace mu::sim {

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
  kPlacedAnew
};
inline constexpr int kServerSteps = static_cast<int>(ServerStep::kPlacedAnew) + 1;

// Of one history, a bit each.
struct Seen {
  uint64_t events = 0, actions = 0, errors = 0, faults = 0, server = 0;

  void Saw(const Event& event) {
    events |= uint64_t{1} << event.index();
    if (const auto* ended = std::get_if<event::RunEnded>(&event))
      errors |= uint64_t{1} << static_cast<int>(ended->error.kind);
  }
  void Saw(const Action& action) { actions |= uint64_t{1} << action.index(); }
  void Saw(Fault fault) { faults |= uint64_t{1} << static_cast<int>(fault); }
  void Saw(ServerStep step) { server |= uint64_t{1} << static_cast<int>(step); }
};

class Coverage {
 public:
  void Add(const Seen& seen);
  void Add(const Coverage& other);
  struct Row {
    std::string kind;  // event, action, error of a run, fault, server
    std::string name;
    uint64_t histories = 0;
  };
  // What a history of the simulation can show; the rest is named by Unreachable().
  std::vector<Row> Rows() const;
  // Events and actions that the simulation does not have, each with the reason.
  static const std::vector<std::pair<std::string, std::string>>& Unreachable();

 private:
  std::array<uint64_t, 64> events_{}, actions_{}, errors_{}, faults_{}, server_{};
};

}  // namespace mu::sim
