// What the core and the shell around it say to each other about a push or an assignment.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "common/base/ids.h"
#include "psserver/core/inherited_memory.h"
#include "psserver/core/update_clocks.h"

namespace mu {

// A call that waits for an answer, by the number that the shell gave it.
using PsCallId = StrongId<struct PsCallIdTag, uint64_t>;

// Partitions that a push changes, and those that it leaves alone because they inherited it.
struct PushCounts {
  uint32_t updates = 0;
  uint32_t inherited = 0;
  friend bool operator==(const PushCounts&, const PushCounts&) = default;
};

// The partitions that a push names: how many, and each of them. They are looked at one by one only
// if the restored state knows the push.
struct PushPartitions {
  using Visit = absl::FunctionRef<void(const PartitionKey&)>;
  uint32_t count = 0;
  absl::FunctionRef<void(Visit)> for_each;
};

// A gradient of a variable or table in a push whose function asks how late its gradients are.
struct PushGradient {
  ClockKey key;
  std::optional<uint64_t> read;  // the clock of the values it was computed from; nullopt: not known
  uint64_t late = 0;             // set by the core, when the push enters
};
struct PushStaleness {
  std::vector<PushGradient> gradients;  // none: nobody asks
  std::optional<uint32_t> max;          // later gradients are refused; nullopt: none
};

// An acknowledgement, or (status not OK) a refusal.
struct PushAnswer {
  absl::Status status;
  bool repeated = false;
  PushCounts counts;
  std::optional<uint64_t> late;  // of its latest gradient; nullopt: not known
};

// A push that has been admitted and is the first of its id. The shell gives it back to the core.
struct AdmittedPush {
  PushId id;
  PushCounts counts;
  bool assigns = false;
  bool entered = false;  // it changes the state: a cut waits for it
  // Of the restored state, as it was when the push came: the core may give it up meanwhile. Null:
  // no partition contains the push.
  std::shared_ptr<const InheritedMemory> inherited;
  PushStaleness staleness;

  // The partition contains the push; it is not applied there.
  bool IsInherited(const PartitionKey& partition) const {
    return inherited != nullptr && inherited->Contains(partition, id);
  }
};

struct PushBegun {
  enum class Step {
    kAnswer,  // `answer`
    kApply,   // check it, Enter, apply it, EndPush
    kWait,    // it is being applied already; EndPush of that one answers this call
  };
  Step step = Step::kAnswer;
  PushAnswer answer;
  AdmittedPush push;
};

struct PushEntered {
  enum class Step {
    kApply,  // change the partitions that have not inherited it, then EndPush
    kSkip,   // there is nothing to change: EndPush
    kWait,   // a cut is being taken: ask again when the gate is open
    kRefuse  // EndPush with `status`
  };
  Step step = Step::kApply;
  absl::Status status;
};

// What becomes of the contributions that the coordinator has chosen for a round.
struct RoundTurn {
  enum class Step {
    kAnswer,  // `answer`
    kApply,   // apply the mean of `chosen`, then EndRound
    kWait     // it is being applied, or a cut is being taken: ask again when that has ended
  };
  Step step = Step::kAnswer;
  PushAnswer answer;                                // with the updates of the whole round
  std::vector<std::shared_ptr<const void>> chosen;  // parallel to the set; null: not kept here
};

struct PushEnded {
  PushAnswer answer;
  std::vector<std::pair<PsCallId, PushAnswer>> waiting;  // for those that waited for it
};

}  // namespace mu
