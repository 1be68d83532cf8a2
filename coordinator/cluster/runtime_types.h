// What the runtime and those who use it hand to each other.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/ids.h"
#include "coordinator/core/checkpoint_number.h"
#include "coordinator/core/failure_log.h"
#include "coordinator/core/function_queue.h"
#include "coordinator/core/restore_round.h"
#include "proto/psserver.pb.h"

namespace mu {

struct RestoredServers {
  std::vector<pb::RestoreReply> replies;  // by server
  std::string from;  // what they were given, for the report: a checkpoint's name, or initial values
};

// The calls to servers that recovery needs, made on threads of the runtime without its lock.
struct RecoveryHooks {
  // Errors: as FaultOf (restore_fault.h) reads them.
  // After it all servers and the catalog's routing are in the round's generation.
  std::function<absl::StatusOr<RestoredServers>(const RestoreRound&)> restore;
  // Takes a checkpoint although nothing is dispatched, because a server wants to leave.
  std::function<absl::StatusOr<CheckpointNumber>()> save;
  std::function<absl::Status(FunctionId place, const Assignment&)> assign;
};

struct RuntimeStats {
  uint64_t functions = 0;  // finished
  uint64_t runs = 0;       // of functions, sent to workers
  uint64_t steps = 0;
  uint64_t samples = 0;
  uint64_t bad_records = 0;
  std::string first_bad_record;
  size_t workers_ready = 0;
  size_t servers = 0;
  size_t unfinished = 0;
  bool updates_paused = false;  // see update_pause.h
  std::vector<MemberFailure> failures;
  UnlistedFailures unlisted_failures;
  BackupRuns backup_runs;
};

}  // namespace mu
