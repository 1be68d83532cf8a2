// The disk that a simulated job's directory lies on: claimed epochs and checkpoints. It outlives
// every process.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "common/base/hash.h"
#include "coordinator/core/data_leases.h"
#include "coordinator/core/function_queue.h"
#include "psserver/core/inherited_memory.h"
#include "tests/sim/message.h"

namespace mu::sim {

// What one push did to one partition. A step has one record, so this says which records were used
// as well.
struct Effect {
  uint32_t function = 0;
  uint8_t step = 0;
  uint16_t record = 0;
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

// What a server writes: all of one instant.
struct ServerFile {
  Partitions partitions;
  std::vector<std::vector<AppliedSteps::Range>> memories;  // see psserver/core/file_memory.h
  std::array<std::vector<int64_t>, kMaxPartitions> inherits;
  uint64_t updates = 0;
};

// Of all that the file holds of partitions.
inline uint32_t ChecksumOf(const ServerFile& file) {
  uint64_t sum = 0;
  for (const Partition& partition : file.partitions) {
    sum = HashCombine(sum, partition.counter);
    for (const Effect& effect : partition.effects) {
      sum = HashCombine(
          sum, (uint64_t{effect.function} << 32) | (uint64_t{effect.record} << 8) | effect.step);
    }
  }
  return static_cast<uint32_t>(sum);
}

struct Checkpoint {
  uint64_t number = 0;           // of its folder
  CheckpointNumber core_number;  // that its manifest says
  uint32_t epoch = 0;            // of the coordinator that took it
  uint8_t servers = 0;
  std::array<std::shared_ptr<const ServerFile>, kMaxServers>
      files;                                      // null: not (completely) written
  std::array<uint32_t, kMaxServers> checksums{};  // of the files, as they were written
  std::array<uint64_t, kMaxServers> updates{};
  std::array<uint64_t, kMaxServers> acknowledged{};  // UpdateLedger's, when it was begun
  bool committed = false;                            // it has a manifest
  bool damaged = false;                              // some file fails its checksum
  FunctionQueue::Position functions;
  std::vector<pb::DatasetPositionProto> data;

  bool good() const {
    return committed && !damaged &&
           std::all_of(files.begin(), files.begin() + servers, [](const auto& f) { return f; });
  }
};

struct Disk {
  uint32_t epoch = 0;                             // the newest claimed
  uint64_t last_checkpoint = 0;                   // that was begun: numbers are used once
  std::map<uint64_t, Checkpoint> checkpoints;     // by number
  std::array<uint8_t, kMaxServers> full{};        // saves of a server that are going to fail
  std::array<Time, kMaxServers> hangs_until{};    // of a server
  std::array<uint8_t, kMaxServers> unreadable{};  // restores of a server that cannot read
};

}  // namespace mu::sim
