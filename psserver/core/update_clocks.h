// A server's clocks: how many updates its part of each variable and table has had from functions
// that ask how late their gradients are. An update counts as begun when it is decided that it is
// applied, and as done when it has been. A gradient is late by the updates that have begun and that
// the values which it was computed from may lack, so an update that was in progress when they were
// read counts as one that they lack.
//
// Pure.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "absl/container/flat_hash_map.h"
#include "psserver/core/inherited_memory.h"

namespace mu {

// A whole variable or table, as far as it is on this server.
struct ClockKey {
  PartitionKey::Kind kind = PartitionKey::Kind::kVariable;
  uint32_t id = 0;
  friend bool operator==(const ClockKey&, const ClockKey&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const ClockKey& key) {
    return H::combine(std::move(h), key.kind, key.id);
  }
};

class UpdateClocks {
 public:
  // What a pull says: values that are read from now on have so many updates.
  uint64_t Read(const ClockKey& key) const {
    const auto it = clocks_.find(key);
    return it == clocks_.end() ? 0 : it->second.done;
  }
  // Of a gradient whose values were read at `read`.
  uint64_t LatenessOf(const ClockKey& key, uint64_t read) const {
    const auto it = clocks_.find(key);
    return it == clocks_.end() ? 0 : it->second.begun - std::min(it->second.begun, read);
  }
  void Begin(const ClockKey& key) { ++clocks_[key].begun; }
  // After Reset, of an update that had begun before it: nothing.
  void End(const ClockKey& key) {
    const auto it = clocks_.find(key);
    if (it != clocks_.end() && it->second.done < it->second.begun) ++it->second.done;
  }
  // For a state that is replaced.
  void Reset() { clocks_.clear(); }
  // The state that was restored has had so many updates.
  void Set(const ClockKey& key, uint64_t updates) { clocks_[key] = {updates, updates}; }

 private:
  struct Clock {
    uint64_t begun = 0;
    uint64_t done = 0;
  };
  absl::flat_hash_map<ClockKey, Clock> clocks_;
};

}  // namespace mu
