// The disk that a simulated job's directory lies on: claimed epochs and checkpoints. It outlives
// every process.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "common/base/status.h"
#include "coordinator/core/checkpoint_number.h"
#include "proto/checkpoint.pb.h"
#include "psserver/core/inherited_memory.h"
#include "psserver/core/update_clocks.h"
#include "tests/sim/message.h"

namespace mu::sim {

// What one push did to one partition. A step has one record or none, so this says which records
// were used as well.
struct Effect {
  uint32_t function = 0;
  uint8_t step = 0;
  uint16_t record = 0;
  uint16_t place = 0;  // of the step among all steps of the job
  uint32_t round = 0;  // in which it was applied; 0: by itself
  friend auto operator<=>(const Effect&, const Effect&) = default;
};

struct Partition {
  bool held = false;
  uint32_t counter = 0;         // that every step increments
  std::vector<Effect> effects;  // in the order in which they were applied
};
using Partitions = std::array<Partition, kMaxPartitions>;

inline PartitionKey KeyOf(uint32_t partition) {
  return {PartitionKey::Kind::kVariable, 0, partition};
}

// All partitions are of one variable.
inline constexpr ClockKey kClock = {PartitionKey::Kind::kVariable, 0};

// What a server writes: all of one instant.
struct ServerFile {
  Partitions partitions;
  std::vector<std::vector<AppliedSteps::Range>> memories;  // see psserver/core/file_memory.h
  std::array<std::vector<int64_t>, kMaxPartitions> inherits;
  uint32_t damage = 0;  // bits that have flipped: the checksum is another one
  bool torn = false;    // its end is missing
};

struct Checkpoint {
  CheckpointNumber number;  // that its manifest says
  uint8_t servers = 0;
  std::array<std::shared_ptr<const ServerFile>, kMaxServers> files;  // null: not written, or gone
  bool committed = false;                                            // it has a manifest
  bool bad_manifest = false;
  pb::JobPositionProto position;  // of its manifest
};

struct Disk {
  uint32_t epoch = 0;                          // the newest claimed
  uint64_t last_checkpoint = 0;                // that was begun: numbers are used once
  std::map<uint64_t, Checkpoint> checkpoints;  // by folder
  // As whoever looks at its manifest and the sizes of its files sees it.
  absl::Status Look(uint64_t folder) const {
    const auto it = checkpoints.find(folder);
    if (it == checkpoints.end() || !it->second.committed)
      return absl::NotFoundError("somebody has removed it");
    if (it->second.bad_manifest) return absl::DataLossError("the manifest is damaged");
    for (uint8_t f = 0; f < it->second.servers; ++f) {
      const ServerFile* const file = it->second.files[f].get();
      if (file == nullptr) return absl::NotFoundError("a file is missing");
      if (file->torn) return absl::DataLossError("a file is torn");
    }
    return absl::OkStatus();
  }
  std::array<uint8_t, kMaxServers> full{};        // saves of a server that are going to fail
  std::array<Time, kMaxServers> hangs_until{};    // of a server
  std::array<uint8_t, kMaxServers> unreadable{};  // restores of a server that cannot read
  uint8_t no_manifest = 0;                        // manifests that are not going to be written
  uint8_t renamed = 0;                            // loads that are going to find another checkpoint
  Time shut_until = 0;                            // the folder of checkpoints
};

}  // namespace mu::sim
