// What travels between the processes of a simulated cluster, and the timers that they set for
// themselves: one flat struct for all, so that a history costs no allocation per message.
#pragma once

#include <array>
#include <cstdint>
#include <string>

namespace mu::sim {

using Time = int64_t;  // virtual nanoseconds, as mu::Clock counts
inline constexpr Time kMicrosecond = 1000;
inline constexpr Time kMillisecond = 1000 * kMicrosecond;

inline constexpr int kMaxWorkers = 4;
inline constexpr int kMaxServers = 3;
inline constexpr int kMaxSteps = 8;  // of a function
inline constexpr int kMaxPartitions = 4;

// A place where a process may run: its address. Every daemon has two, so that a replacement may
// start elsewhere while its predecessor is cut off or hangs.
using Slot = uint8_t;
inline constexpr Slot kCoordinatorSlots = 2;
inline constexpr Slot kFirstWorkerSlot = kCoordinatorSlots;
inline constexpr Slot kFirstServerSlot = kFirstWorkerSlot + 2 * kMaxWorkers;
inline constexpr Slot kSlots = kFirstServerSlot + 2 * kMaxServers;
inline constexpr Slot kNowhere = 255;
inline bool IsWorkerSlot(Slot slot) { return slot >= kFirstWorkerSlot && slot < kFirstServerSlot; }

enum class Kind : uint8_t {
  // Timers of a process.
  kTick,         // a daemon's heartbeat, the coordinator's monitor
  kRetry,        // a daemon's next try
  kComputed,     // a worker's step is ready to be pushed
  kInstalled,    // a worker has compiled its functions
  kInterrupted,  // the thread that executes a worker's step notices that its calls are given up
  kAlarm,        // a worker's core wants a tick
  kApply,        // a server has checked the push `call`
  kApplied,      // it has applied it
  kPrepared,     // a server has memory for a cut
  kWritten,      // a server's file is on the disk
  kVerified,     // a server has looked at the files of the restore `call`
  kLoaded,       // a server has read its files
  kCheckpointDue,
  kManifestDue,
  kPlanMade,   // of the epoch `function`
  kAssigned,   // an assignment has ended
  kUserError,  // a function of the user fails, or the user cancels all
  // Calls to the coordinator.
  kRegister,
  kHeartbeat,
  kLeave,
  // Calls to servers.
  kConfigure,
  kPull,
  kPush,
  kSave,
  kRestore,
  kFence,
  // Calls to workers.
  kCancelBelow,
  kInstall,
  kRun,
  kCancelRun,
  // What comes back.
  kReply,
  kStepResult,
  kRunEnded,
  // The machine's news: for the coordinator, the process that ran at slot `index` is dead, or its
  // connections broke.
  kDaemonDied,
  kConnectionLost,
  kDrain,  // SIGTERM
  // What the history does; handled by the cluster itself.
  kStrike,
  kStartProcess,
  kStartCoordinator,
  kKillProcess,
};

enum class Code : uint8_t {
  kOk,
  kMachine,       // unavailable, worth another try
  kServerGone,    // a worker has given a server up
  kHandedBack,    // a worker is leaving
  kStale,         // an older epoch, generation or low-water mark
  kNotInstalled,  // a worker that does not know the servers of this generation
  kNotMember,     // the coordinator does not know the daemon
  kBadFile,       // a checkpoint's file is missing or fails its checksum
  kCannotRead,    // a server cannot open a checkpoint's file that others can
  kDiskFull,
};

struct Message {
  Time sent = 0;
  uint64_t incarnation = 0;     // of the daemon that speaks: in kRegister, kHeartbeat, kLeave
  uint64_t to_incarnation = 0;  // 0: for whoever has the address
  uint64_t from_incarnation = 0;
  Kind kind{};
  Kind request{};  // of a kReply: what it answers
  Code code = Code::kOk;
  Slot from = kNowhere, to = kNowhere;
  uint8_t index = 0;
  uint8_t server = 0;
  uint8_t step = 0, first_step = 0, steps = 0;
  bool copy = false;  // the network's second one; its answer goes nowhere
  bool repeated = false;
  bool keep_state = false;
  uint32_t call = 0;
  uint32_t epoch = 0, generation = 0;
  uint32_t pulled = 0;         // of a push: the generation of what its step has read
  uint32_t routing = 0;        // version, of a coordinator
  uint32_t routing_place = 0;  // where the cluster keeps its content
  uint32_t checkpoint = 0;
  uint32_t attempt = 0;  // of a save: the same in repeats of the call
  uint32_t moved = 0;    // of a server's heartbeat, while it reads or writes files; else 0
  uint64_t low_water = 0;
  uint64_t function = 0, run = 0;
  uint64_t after = 0;  // of a run: the one before it
  uint64_t updates = 0;
  std::array<uint16_t, kMaxSteps> records{};  // of each step
  // By server: partitions that a step changed, and those left alone since a restored state held it.
  std::array<uint8_t, kMaxServers> step_updates{}, step_inherited{};
};

std::string KindName(const Message& message);  // for traces

// Where the servers are; what workers are given. Kept by version, of each coordinator.
struct Routing {
  uint32_t generation = 0;
  uint8_t servers = 0;
  std::array<Slot, kMaxServers> slot{};
  std::array<uint64_t, kMaxServers> incarnation{};
};

}  // namespace mu::sim
