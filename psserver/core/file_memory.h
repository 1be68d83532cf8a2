// How a checkpoint's file says which pushes its partitions contain (docs/checkpoint_format.md):
// numbered memories, and for each partition the numbers of those that it inherited. Number 0 is
// what the server that wrote the file had applied itself, so all partitions of the file contain it.
//
// Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "psserver/core/cut_memory.h"

namespace mu {

// What a cut's file says. Memories that have become empty are not written.
class WrittenMemory {
 public:
  explicit WrittenMemory(const CutMemory* cut);  // outlives this

  // In the order of their numbers, from 0.
  void ForEach(absl::FunctionRef<void(const std::vector<AppliedSteps::Range>&)> write) const;
  // Beside 0.
  std::vector<int64_t> NumbersOf(const PartitionKey& partition) const;

 private:
  const CutMemory* const cut_;
  std::vector<int64_t> numbers_;  // in the file, of each inherited memory; 0: not written
};

// Brings what one file says into the memory of a restored state.
class ReadMemory {
 public:
  using Steps = absl::StatusOr<std::vector<AppliedSteps::Range>>;

  // Nothing below `low_water` is taken.
  ReadMemory(uint64_t low_water, InheritedMemory* state) : low_water_(low_water), state_(state) {}

  // A partition that was taken from the file, with its numbers beside 0. `read` gives the memory of
  // a number, once for each. RESOURCE_EXHAUSTED for more steps than all ledgers together should
  // ever hold, and what `read` says.
  absl::Status Inherit(const PartitionKey& partition, absl::Span<const int64_t> numbers,
                       absl::FunctionRef<Steps(int64_t number)> read);

 private:
  absl::Status Inherit(const PartitionKey& partition, int64_t number,
                       absl::FunctionRef<Steps(int64_t number)> read);

  const uint64_t low_water_;
  InheritedMemory* const state_;
  std::map<int64_t, int64_t> taken_;  // by number in the file: in state_; -1: empty
};

}  // namespace mu
