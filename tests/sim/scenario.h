// What a history is made of: the cluster's size, the work, and which faults may strike. All follow
// from the seed; a scenario fixes some of it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/base/stream_protections.h"
#include "coordinator/core/protections.h"
#include "psserver/core/protections.h"
#include "tests/sim/message.h"
#include "worker/core/protections.h"

namespace mu::sim {

enum class Fault : uint8_t {
  kKillWorker,  // of workers
  kHangWorker,
  kDrainWorker,
  kReplaceWorker,  // another process takes the place while the old one lives
  kCutWorker,      // from the coordinator
  kCutWorkerServer,
  kNoData,      // for some time the data is not there on its node
  kGarbage,     // what it says next of a run makes no sense
  kForget,      // it knows nothing any more of what was installed on it
  kKillServer,  // of servers
  kHangServer,
  kDrainServer,
  kReplaceServer,
  kCutServer,
  kDeafServer,       // it sends heartbeats, but answers no calls
  kKillCoordinator,  // of the coordinator
  kHangCoordinator,  // SIGSTOP, later SIGCONT
  kSecondCoordinator,
  kCutCoordinator,  // from everybody
  kCancel,          // its user cancels all functions that are not finished
  kBadFunction,     // workers find a function wrong, which has the same consequences
  kJoinWorker,      // one more worker, from now on
  kDiskFull,        // the next save of a server fails
  kBadFile,         // the newest checkpoint is damaged
  kLostFile,        // a file of it is gone
  kResize,    // the coordinator starts anew, with more or fewer servers, and maybe all of them
  kNoDisk,    // a server's next restore cannot read the files, which are good
  kHangDisk,  // a server's saves and restores stand still for some time
  // Younger kinds, which are drawn apart: histories without them are what they were before.
  kUserError,     // a function of the user fails, in a step or at once: the others are cancelled
  kUserRestore,   // the user goes back to the values of a checkpoint, and on from there
  kNoManifest,    // the next manifest cannot be written
  kBadManifest,   // the manifest of the newest checkpoint is damaged
  kTornFile,      // a file of it ends early
  kShutFolder,    // for some time the checkpoints' folder can neither be listed nor changed
  kStranger,      // another job's coordinator calls a worker or a server
  kClose,         // the program ends by itself, and is started again
  kChangeRounds,  // where training is in rounds: of another size from now on, or none
  kRenamed        // the next checkpoint that servers load: another one has its name meanwhile
};
inline constexpr int kFaultKinds = static_cast<int>(Fault::kRenamed) + 1;
inline constexpr int kOldFaultKinds = static_cast<int>(Fault::kHangDisk) + 1;
const char* ToString(Fault fault);

// Protections of the three cores that are taken away, to see that the checker notices.
struct Broken {
  core::Broken coordinator;
  server_core::Broken server;
  worker_core::Broken worker;
  resumable_stream::Broken stream;
};
struct Protection {
  const char* name;
  void (*take_away)(Broken*);
  const char* scenario = "everything";  // where the checker notices
  uint64_t within = 10000;              // histories
};
const std::vector<Protection>& Protections();

struct Scenario {
  uint32_t workers = 2;
  uint32_t servers = 2;
  uint32_t partitions = 4;
  uint32_t in_flight = 2;
  uint32_t batches = 20;  // of an epoch
  uint32_t epochs = 1;
  bool starts_epochs = false;  // the user starts each, when the one before it has been trained
  uint32_t steps = 4;          // of a function, at most
  bool per_worker = false;     // every worker reads all data by itself
  uint32_t own_epochs = 0;     // so many times, if it does; 0: without end
  uint64_t most_kept = 0;      // bytes, for repeats; 0: any amount
  // Entries of a server's memory of applied pushes; 0: more than there are. Else nothing is
  // assigned: before an assignment is repeated there may be more functions than have room, and no
  // checkpoint makes room before it is, so the job would end.
  uint32_t most_remembered = 0;
  // Of training's functions, those that read no records; half of these change nothing.
  uint32_t per_mille_no_data = 0;
  int slow_worker = -1;  // its steps take ten times as long
  bool recover_shard = false;
  std::optional<uint32_t> most_late;  // of a gradient, in updates of its server; nothing: any
  // Steps, of a step that starts; nothing: any. No round waits for it.
  std::optional<uint32_t> most_ahead;
  // Synchronous rounds of so many steps, and so many more in flight; 0: none.
  uint32_t replicas = 0, backups = 0;
  uint32_t evaluations = 0;  // beside training
  int slow_record = -1;      // the step that reads it takes 20 times as long, on all workers
  // Somebody tells the coordinator that a process has died, as under --local
  bool told_of_deaths = false;
  bool slow_replacements = false;  // a killed daemon's place may be empty for several leases
  Time data_comes_at = 0;          // to all nodes
  Time checkpoint_every = 100 * kMillisecond;
  uint32_t keep = 3;  // checkpoints
  // Messages: calls, what comes back, calls that come twice, any that takes long.
  uint32_t per_mille_lost = 0, per_mille_reply_lost = 0, per_mille_repeated = 0, per_mille_slow = 0;
  // Contributions to a round whose check outlasts their calls.
  uint32_t per_mille_slow_checks = 0;
  uint32_t per_mille_no_plan = 0;  // of epochs, which cannot be planned: the coordinator ends
  struct Strike {
    Time at;
    Fault fault;
  };
  std::vector<Strike> strikes;
  Broken broken;

  bool Undisturbed() const {
    return strikes.empty() && data_comes_at == 0 && per_mille_lost == 0 &&
           per_mille_reply_lost == 0 && per_mille_repeated == 0 && per_mille_slow_checks == 0;
  }
  // Functions that are scheduled, if each worker reads by itself and none comes to its end.
  uint32_t Functions() const { return batches * epochs / steps; }
  // Updates of each partition, but for those of functions that read no records.
  uint32_t TotalSteps() const { return per_worker ? Functions() * steps : batches * epochs; }
};

// What DrawScenario may draw.
struct ScenarioLimits {
  std::vector<Fault> kinds;  // to choose from; empty: all
  int least_strikes = 0, most_strikes = 6;
  enum class Messages { kDrawn, kReliable, kLost, kReplyLost, kRepeated, kSlow };
  Messages messages = Messages::kDrawn;
  uint32_t workers = 0, servers = 0;  // 0: drawn
  uint32_t steps = 0;                 // 0: drawn
  Time checkpoint_every = 0;          // 0: drawn
  std::optional<bool> recover_shard, per_worker, most_kept, slow_worker, late, ahead, sync,
      slow_record, slow_checks;     // nothing: drawn
  uint32_t replicas = 0;            // 0: drawn
  std::optional<uint32_t> backups;  // nothing: drawn
  std::optional<bool> groups;       // nothing: drawn
  std::optional<bool> full_ledgers, no_data, starts_epochs, data_ends;
  Broken broken;
};
Scenario DrawScenario(uint64_t seed, const ScenarioLimits& limits = {});
std::string Describe(const Scenario& scenario);

}  // namespace mu::sim
