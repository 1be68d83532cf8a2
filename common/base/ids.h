// Identities as types: a WorkerId is not a PsId and neither is an int.
#pragma once

#include <compare>
#include <cstdint>
#include <ostream>
#include <string>

#include "absl/strings/str_cat.h"

namespace mu {

// An unsigned integer of its own type. Ordered and hashable; convert with value().
template <typename Tag, typename Rep>
class StrongId {
 public:
  constexpr StrongId() = default;
  constexpr explicit StrongId(Rep value) : value_(value) {}
  constexpr Rep value() const { return value_; }
  constexpr StrongId Next() const { return StrongId(value_ + 1); }
  friend constexpr auto operator<=>(StrongId, StrongId) = default;
  template <typename H>
  friend H AbslHashValue(H h, StrongId id) {
    return H::combine(std::move(h), id.value_);
  }
  friend std::ostream& operator<<(std::ostream& out, StrongId id) { return out << id.value_; }

 private:
  Rep value_ = 0;
};

using JobId = StrongId<struct JobIdTag, uint64_t>;
using WorkerId = StrongId<struct WorkerIdTag, uint32_t>;
using PsId = StrongId<struct PsIdTag, uint32_t>;
using Incarnation = StrongId<struct IncarnationTag, uint64_t>;  // of a process
// Of a server's state; grows with every restore.
using Generation = StrongId<struct GenerationTag, uint64_t>;
using FunctionId = StrongId<struct FunctionIdTag, uint64_t>;  // of one call of a function
using StepIndex = StrongId<struct StepIndexTag, uint32_t>;    // within that call
using PartitionId = StrongId<struct PartitionIdTag, uint32_t>;
using CoordinatorEpoch = StrongId<struct CoordinatorEpochTag, uint64_t>;
using Fingerprint = StrongId<struct FingerprintTag, uint64_t>;  // of a function's graph

}  // namespace mu
