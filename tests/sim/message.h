// What travels between the processes of a simulated cluster: one flat struct for all, so that a
// history costs no allocation per message.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace mu::sim {

using Time = int64_t;  // virtual nanoseconds, as mu::Clock counts
inline constexpr Time kMicrosecond = 1000;
inline constexpr Time kMillisecond = 1000 * kMicrosecond;
inline absl::Time At(Time time) { return absl::UnixEpoch() + absl::Nanoseconds(time); }

inline constexpr uint64_t kJob = 7, kOtherJob = 8;
inline constexpr Time kHeartbeatEvery = 40 * kMillisecond;
inline constexpr Time kMonitorEvery = 15 * kMillisecond;
inline constexpr Time kBackupAfter = 60 * kMillisecond;  // without a result
inline constexpr Time kLease = 150 * kMillisecond;       // without a heartbeat a daemon is lost
inline constexpr Time kCallTimeout = 60 * kMillisecond;
inline constexpr Time kServerCallTimeout = 30 * kMillisecond;  // of a worker's call

inline constexpr int kMaxWorkers = 4;
inline constexpr int kMaxServers = 3;
inline constexpr int kMaxSteps = 8;  // of a function
inline constexpr int kMaxPartitions = 4;
inline constexpr uint16_t kNoRecord = 0xffff;  // of a step that reads none
// What a step reads is one record here, for a batch of so many: batches differ in size.
inline uint32_t SamplesOf(uint16_t record) { return record == kNoRecord ? 0 : 1 + record % 3; }

// There are so many definitions of functions, from 1 on; calls of them alternate.
inline constexpr uint64_t kFunctions = 2;

// A place where a process may run: its address. Every daemon has two, so that a replacement may
// start elsewhere while its predecessor is cut off or hangs.
using Slot = uint8_t;
inline constexpr Slot kCoordinatorSlots = 2;
inline constexpr Slot kFirstWorkerSlot = kCoordinatorSlots;
inline constexpr Slot kFirstServerSlot = kFirstWorkerSlot + 2 * kMaxWorkers;
inline constexpr Slot kSlots = kFirstServerSlot + 2 * kMaxServers;
inline constexpr Slot kNowhere = 255;
inline bool IsWorkerSlot(Slot slot) { return slot >= kFirstWorkerSlot && slot < kFirstServerSlot; }
inline Slot WorkerSlot(uint32_t index) { return static_cast<Slot>(kFirstWorkerSlot + 2 * index); }
inline Slot ServerSlot(uint32_t index) { return static_cast<Slot>(kFirstServerSlot + 2 * index); }
inline uint8_t IndexOf(Slot slot) {
  const Slot first = slot < kFirstWorkerSlot ? 0
                     : IsWorkerSlot(slot)    ? kFirstWorkerSlot
                                             : kFirstServerSlot;
  return static_cast<uint8_t>((slot - first) / 2);
}

enum class Kind : uint8_t {
  kRegister,  // to the coordinator
  kHeartbeat,
  kLeave,
  kConfigure,  // to servers
  kPull,
  kPush,
  kSave,
  kRestore,
  kCommitRound,
  kLoadView,
  kDropView,
  kFence,
  kCancelBelow,  // to workers
  kScan,
  kInstall,
  kReply,  // to whoever has called
  // On the stream between coordinator and worker.
  kFeedOpen,     // a connection, to a worker
  kFeedWelcome,  // its answer
  kRun,
  kCancelRun,
  kStepResult,
  kRunEnded,
  kFeedBroken  // to either end: its connection is over
};
inline bool IsFeed(Kind kind) { return kind >= Kind::kFeedOpen && kind <= Kind::kRunEnded; }

struct Message {
  uint64_t to_incarnation = 0;  // 0: for whoever has the address
  uint64_t from_incarnation = 0;
  Kind kind{};
  Kind request{};       // of a kReply: what it answers
  absl::Status status;  // of an answer or kRunEnded; of a kStepResult: it makes no sense
  Slot from = kNowhere, to = kNowhere;
  uint8_t index = 0;
  uint8_t file = 0;  // of a kScan
  uint8_t step = 0, first_step = 0, steps = 0;
  uint8_t fails_at = 0;       // of a run that fails: the step
  bool fails = false;         // a run, with the error of its user
  bool wrong_inputs = false;  // a run, which is refused with that error as soon as it comes
  bool only_reads = false;    // a run and its pulls: it changes nothing
  bool copy = false;          // the network's second one; its answer goes nowhere
  bool repeated = false;
  bool keep_state = false;
  bool restore_follows = false;
  bool handed_back = false;  // a run, since its worker is leaving
  uint32_t call = 0;
  uint32_t epoch = 0, generation = 0;
  uint32_t pulled = 0;  // of a push: the generation of what its step has read
  // Of an answer to a pull, and of the push that follows: the server's clock; for the checker how
  // many updates the server had certainly applied.
  uint64_t clock = 0, applied = 0;
  uint32_t routing = 0;  // where the cluster keeps its content
  // Of a run, a push and a commitment: the synchronous round, and how many contributions it has at
  // most; of a commitment where the cluster keeps its set; of an answer to a pull, and of the push
  // that follows: how many steps the server's state had.
  uint64_t round = 0;
  uint32_t most = 0, set = 0, version = 0;
  uint32_t checkpoint = 0;
  uint32_t attempt = 0;  // of a save: the same in repeats of the call
  uint32_t moved = 0;    // of a server's heartbeat, while it reads or writes files; else 0
  // Of a server's heartbeat: the memory of applied pushes, and how large it may be.
  uint64_t applied_bytes = 0, most_applied_bytes = 0;
  uint64_t low_water = 0;
  uint64_t function = 0, run = 0;       // of a kInstall: the definition; 0: the routing
  uint32_t stream = 0, connection = 0;  // of what travels on a stream
  uint64_t number = 0, received = 0;    // see ResumableStream
  uint64_t meant = 0;                   // of a connection: the process that it is for
  // Of an answer, and of a result of an evaluation: how many updates its values have.
  uint64_t updates = 0;
  uint64_t view = 0;  // whose values a run reads
  // Of a run's first step among all steps of the job; of a step that pulls or pushes.
  uint32_t place = 0;
  std::array<uint16_t, kMaxSteps> records{};  // of each step; of a push or a result, of its step
  // By server: partitions that a step changed, and those left alone since a restored state held it.
  std::array<uint8_t, kMaxServers> step_updates{}, step_inherited{};
  uint64_t job = kJob;  // of a request, and of its answer
};

std::string Describe(const Message& message);  // for traces

// Where the servers are; what workers are given.
struct Routing {
  uint32_t epoch = 0, version = 0;  // of a coordinator, of its catalog
  uint32_t generation = 0;
  uint8_t servers = 0;
  std::array<Slot, kMaxServers> slot{};
  std::array<uint64_t, kMaxServers> incarnation{};
};

}  // namespace mu::sim
