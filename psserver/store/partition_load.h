// What was asked of a partition since it was made.
#pragma once

#include <cstdint>

namespace mu {

struct PartitionLoad {
  uint64_t reads = 0;  // calls that read values or multiplied them
  uint64_t read_bytes = 0;
  uint64_t updates = 0;  // calls that changed values
  uint64_t update_bytes = 0;

  void Read(uint64_t bytes) {
    ++reads;
    read_bytes += bytes;
  }
  void Updated(uint64_t bytes) {
    ++updates;
    update_bytes += bytes;
  }
};

}  // namespace mu
