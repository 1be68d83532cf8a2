// What is to be done when parameter servers are lost. A pure state machine: events in, actions out;
// no clock, thread or socket. The shell around it is the runtime (runtime_servers.cc), and a
// simulation in the tests.
//
//   serving --a server is lost--> paused --all servers there--> restoring (generation g) --all have
//   answered--> serving
//
// A round of restores is given a generation of its own; answers of an older one are ignored. A loss
// during a round ends it: the next one begins when all servers are there. A checkpoint that turns
// out to be bad is not used any more, the next older one is. A server that cannot read a good one
// is replaced, as often as it takes; no checkpoint is given up for it.
//
// `all`: every server restores and the queue rolls back to the checkpoint. `shard`: the servers
// that were lost restore, the others keep what they have, and functions go on where they were.
//
// A server that takes its leave: dispatch pauses, every server takes a new generation so that no
// push of before can come any more, and a checkpoint is taken. It then holds everything, so whoever
// takes the place restores from it and nothing is rolled back, in either mode. One that asks while
// others are being recovered waits: the checkpoint is taken when they have their state, before
// anything runs.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "common/base/ids.h"
#include "coordinator/core/checkpoint_number.h"
#include "coordinator/core/restore_fault.h"

namespace mu {

enum class RecoveryMode { kAll, kShard };

struct RecoveryAction {
  enum class Kind {
    kPause,  // start nothing; what runs goes back to the queue at its first step without a result
    kRollBack,        // the queue: what `checkpoint` does not contain runs again
    kRestore,         // every server takes `generation`, and loads `checkpoint` unless it keeps its
                      // state; answered by RestoreDone or RestoreFailed
    kTakeCheckpoint,  // for a server that leaves; answered by LeaveCheckpoint
    kLetGo,           // `server` may end now
    kReplace,  // `server` is at fault: its process is taken out of the cluster and may not come
               // back
    kResume,   // all servers are in `generation`: dispatch
    kGiveUp,   // no checkpoint is left that could be used
  };
  Kind kind;
  uint32_t server = 0;
  CheckpointNumber checkpoint;
  Generation generation;
  std::vector<bool> keep;  // by server
};

class Recovery {
 public:
  using Actions = std::vector<RecoveryAction>;
  struct Options {
    uint32_t servers = 1;
    RecoveryMode mode = RecoveryMode::kAll;
    // Of how many restore points the newest may be bad: FunctionQueue keeps what they need.
    size_t points = 2;
  };
  explicit Recovery(Options options) : options_(options) {}
  RecoveryMode mode() const { return options_.mode; }

  // All servers have been given their parameters, in this generation; the queue could go back to
  // one of `points`, oldest first. Once.
  Actions Start(Generation generation, std::vector<CheckpointNumber> points);
  // A checkpoint is complete.
  void Committed(CheckpointNumber checkpoint);
  // Values were loaded into all servers, in a new generation: what was before is over. A round that
  // has begun meanwhile begins anew.
  Actions Loaded(Generation generation, CheckpointNumber point);

  // Servers may have been asked to take this generation: a round takes a newer one.
  void GivenOut(Generation generation) { given_out_ = std::max(given_out_, generation); }

  Actions ServerLost(uint32_t server);
  // What the servers hold is no longer what the queue believes (repeats were cancelled): back to
  // the newest point.
  Actions StateLost();
  // A process has taken the place of a server that was lost.
  Actions ServerReady(uint32_t server);
  Actions RestoreDone(Generation generation);
  // `fault`: not kFatal, after which nothing is tried. `server`: of kServer.
  Actions RestoreFailed(Generation generation, RestoreFault fault, uint32_t server = 0);
  // Some time has passed since a failure of kTryAgain.
  Actions Retry();

  // A server asks for its leave. kLetGo follows, sooner or later, unless it is lost before.
  Actions ServerLeaving(uint32_t server);
  // The answer to kTakeCheckpoint: the checkpoint, after Committed, or none (it failed).
  Actions LeaveCheckpoint(std::optional<CheckpointNumber> checkpoint);

  bool started() const { return started_; }
  bool serving() const { return started_ && !paused_; }
  // Functions that have finished may still run again before the servers serve.
  bool may_roll_back() const {
    return paused_ && !lost_.empty() && !covered_ && options_.mode == RecoveryMode::kAll;
  }
  Generation generation() const { return generation_; }
  // Whether answers of this generation are waited for.
  bool restoring(Generation generation) const { return generation == generation_ && restoring_; }
  const std::vector<CheckpointNumber>& points() const { return points_; }  // oldest first
  const std::set<uint32_t>& lost() const { return lost_; }  // since the servers last served

 private:
  Actions Pause();
  void BeginRound(Actions* actions);
  void LetGo(bool covered, Actions* actions);

  Options options_;
  bool started_ = false;
  bool paused_ = false;
  bool gave_up_ = false;
  Generation generation_;
  Generation given_out_;
  std::vector<CheckpointNumber> points_;
  std::set<uint32_t> absent_;  // nobody has the place
  std::set<uint32_t> lost_;    // their state is gone
  bool covered_ = false;       // the newest point holds all that the servers did
  std::set<uint32_t> leaving_;
  bool taking_ = false;                          // kTakeCheckpoint is to be answered
  bool state_lost_ = false;                      // since then
  bool restoring_ = false;                       // kRestore is to be answered
  CheckpointNumber round_point_;                 // what those that restore do it from
  bool failed_ = false;                          // the round is to be repeated
  std::optional<CheckpointNumber> rolled_back_;  // since the pause
};

}  // namespace mu
