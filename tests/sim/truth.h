// The checker: what nobody in the cluster knows but everybody relies on. Processes tell it what
// they do while a history runs; afterwards it looks at what is left.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "tests/sim/disk.h"
#include "tests/sim/message.h"
#include "tests/sim/scenario.h"

namespace mu::sim {

class Truth {
 public:
  explicit Truth(const Scenario* scenario) : scenario_(scenario) {}

  // A server serves from now on, in this generation; whatever had its place before does not count
  // any more.
  void ServerActive(uint8_t index, uint64_t incarnation, uint32_t epoch, uint32_t generation);
  // What this server holds is going to be replaced: what it still applies is gone with it.
  void StateGivenUp(uint8_t index) { active_[index].generation = 0; }
  // A server says to a worker that it has applied a push; `repeated`: before.
  void Acknowledged(uint8_t index, uint64_t incarnation, const Message& push, bool repeated,
                    Time now);
  // A step reads this server's state.
  void Pulled(uint8_t index, const Message& pull, const Partitions& partitions);
  // From now on a coordinator tells each daemon that it hears of that this generation begins.
  void Announced(uint32_t epoch, uint32_t generation, Time now);
  // From now on rounds may have so many steps, too, and some steps train without rounds.
  void RoundsChange(uint32_t replicas);
  // A coordinator starts a step for this round.
  void Started(uint64_t function, uint32_t step, uint64_t round);
  // A function has so many steps: fewer where its worker comes to the end of its own data.
  void Bound(uint32_t epoch, uint64_t function, uint32_t steps);
  // A worker has come to that end: functions from `next` on are not scheduled.
  void OutOfData(uint32_t epoch, uint64_t next);
  // A function is scheduled that trains and reads no records.
  void ScheduledWithoutData(uint32_t epoch, uint64_t function, uint32_t steps);
  // The user of a coordinator gets the result of a step.
  void Delivered(uint32_t epoch, uint64_t function, uint32_t step);
  // The coordinator takes the result of a step: all its updates are acknowledged.
  void ResultTaken(uint32_t epoch, uint64_t function, uint32_t step);
  // The user is told that this function, which had these records, was cancelled: each of its steps
  // may be there or not, on each partition for itself.
  void Cancelled(uint32_t epoch, uint64_t function, const std::vector<uint16_t>& records);
  // A function of this coordinator's user fails, or is found to be wrong: it ends the others.
  void Failed(uint32_t epoch, const absl::Status& error);
  // The user may be told that it is over: no server applies any of it from now on.
  void CancelReported(uint32_t epoch);
  // The user is told: it must be the first error since it was last told. OK: there is none.
  void ErrorTold(uint32_t epoch, const absl::Status& error);
  // It takes this server's state for restored.
  void Restored(uint32_t epoch, uint32_t generation, const Partitions* partitions);
  // The user has gone back to the values of this checkpoint, and this server holds them (null: its
  // state is not known). What they lack is cancelled.
  void ValuesRestored(uint32_t epoch, const Checkpoint& checkpoint, const Partitions* partitions);
  // A coordinator begins, from a checkpoint or (null) with the initial values.
  void NewEpoch(uint32_t epoch, const Checkpoint* checkpoint);

  // The servers' final state, and what the coordinator's report says of updates that were rolled
  // back.
  void CheckState(const std::array<const Partitions*, kMaxServers>& state, uint32_t servers,
                  int64_t reported);

  void Fail(const std::string& what);
  bool failed() const { return !problem_.empty(); }
  const std::string& problem() const { return problem_; }

 private:
  // Acknowledged steps that these do not hold are acknowledged no longer: how many these are.
  int64_t ForgetLost(const Partitions& partitions);
  // Each step is in a round, and none has more than it may.
  bool CheckRounds(uint32_t partition, const std::vector<Effect>& effects);
  struct Active {
    uint64_t incarnation = 0;
    uint32_t epoch = 0, generation = 0;
  };
  struct Announcement {
    Time at = 0;
    uint32_t epoch = 0, generation = 0;
  } announced_;
  const Scenario* const scenario_;
  std::string problem_;  // the first
  std::array<Active, kMaxServers> active_;
  std::map<uint64_t, std::set<uint64_t>> started_;  // rounds, by KeyOf the step
  std::map<uint64_t, uint32_t> delivered_;          // (epoch, function) to steps
  std::map<uint32_t, std::string> first_errors_;    // by epoch, that its user has not been told
  // By partition, of the present epoch: acknowledged steps that its state holds, as KeyOf.
  std::array<absl::flat_hash_set<uint64_t>, kMaxPartitions> acknowledged_;
  std::map<uint64_t, std::vector<uint16_t>> cancelled_;  // functions, with their records
  bool any_cancelled_ = false;
  bool rounds_change_ = false;
  uint32_t most_replicas_ = 0;  // since they do
  // Of the present epoch: functions with fewer steps than were asked for, and the first that is not
  // scheduled any more.
  std::map<uint64_t, uint32_t> short_;
  std::optional<uint64_t> ends_at_;
  std::map<uint64_t, uint32_t> without_data_;  // functions of the present epoch, with their steps
  uint64_t reported_below_ = 0;                // of cancelled functions: the user has been told
  int64_t rolled_back_ = 0;                    // acknowledged updates, in this epoch
  int64_t rolled_back_before_ = 0;
  uint32_t epoch_ = 0, epochs_ = 0, restores_ = 0, restored_generation_ = 0;
};

}  // namespace mu::sim
