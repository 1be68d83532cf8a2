// What a history is made of: the cluster's size, the work, and which faults may strike. All follow
// from the seed; a scenario fixes some of it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/sim/message.h"

namespace mu::sim {

enum class Fault : uint8_t {
  kKillWorker,
  kKillServer,
  kKillCoordinator,
  kHangWorker,
  kHangServer,
  kHangCoordinator,  // SIGSTOP, later SIGCONT
  kDrainWorker,
  kDrainServer,
  kJoinWorker,         // one more worker, from now on
  kReplaceServer,      // another process takes the place while the old one lives
  kSecondCoordinator,  // another coordinator is started while the old one lives
  kCutWorker,
  kCutServer,
  kCutCoordinator,   // from the coordinator; kCutCoordinator: from everybody
  kCutWorkerServer,  // a worker from a server
  kUserError,        // a function of the user fails: all that are not finished are cancelled
  kDiskFull,         // the next save of a server fails
  kBadFile,          // the newest checkpoint is damaged
  kResize,    // the coordinator starts anew, with more or fewer servers, and maybe all of them
  kNoDisk,    // a server's next restore cannot read the files, which are good
  kForget,    // a worker knows nothing any more of what was installed on it
  kHangDisk,  // a server's saves and restores stand still for some time
};
inline constexpr int kFaultKinds = static_cast<int>(Fault::kHangDisk) + 1;
const char* ToString(Fault fault);

// Protections that can be taken away, to see that the checker notices.
struct Broken {
  bool deduplication = false;       // servers apply repeats: the ledger's answer is ignored
  bool inheritance = false;         // and what their restored state contains
  bool fencing = false;             // servers and workers take older epochs and generations
  bool leases = false;              // servers serve without one
  bool requeueing = false;          // a lost worker's functions stay lost
  bool low_water_high = false;      // the mark passes functions that a restore would run again
  bool low_water_stuck = false;     // the mark never rises
  bool commit_after_fence = false;  // functions that are cancelled end no checkpoint
  bool cancel_below_mark = false;   // a cancellation ends what is below the low-water mark only
  bool late_position = false;       // the position is noted after the cuts
  bool not_reinstalled = false;     // a worker that forgot its functions does not get them again
  bool mixed_load = false;          // servers keep what a load that failed has left
  bool late_fences = false;         // servers take fences of older generations
  bool old_generations = false;     // servers serve before they are restored
  bool checksums = false;           // servers load damaged files
  // Of worker/core/protections.h.
  bool resumed_early = false, resumed_late = false, old_routing = false, results_kept = false,
       generation_of_now = false, early_cancel = false, any_order = false, late_install = false;
};

struct Scenario {
  uint32_t workers = 2;
  uint32_t servers = 2;
  uint32_t partitions = 4;
  uint32_t in_flight = 2;
  uint32_t batches = 20;  // of an epoch
  uint32_t epochs = 1;
  uint32_t steps = 4;    // of a function, at most
  int slow_worker = -1;  // its steps take ten times as long
  bool recover_shard = false;
  // Somebody tells the coordinator that a process has died, as under --local
  bool told_of_deaths = false;
  Time checkpoint_every = 100 * kMillisecond;
  // Messages: calls, what comes back, calls that come twice, any that takes long.
  uint32_t per_mille_lost = 0, per_mille_reply_lost = 0, per_mille_repeated = 0, per_mille_slow = 0;
  struct Strike {
    Time at;
    Fault fault;
  };
  std::vector<Strike> strikes;
  Broken broken;
};

// What DrawScenario may draw.
struct ScenarioLimits {
  std::vector<Fault> kinds;  // to choose from; empty: all
  int least_strikes = 0, most_strikes = 6;
  enum class Messages {
    kDrawn,
    kReliable,
    kLost,
    kReplyLost,
    kRepeated
  } messages = Messages::kDrawn;
  uint32_t workers = 0, servers = 0;  // 0: drawn
  enum class Recovery { kDrawn, kAll, kShard } recovery = Recovery::kDrawn;
  Time checkpoint_every = 0;  // 0: drawn
  Broken broken;
};
Scenario DrawScenario(uint64_t seed, const ScenarioLimits& limits = {});
std::string Describe(const Scenario& scenario);

}  // namespace mu::sim
