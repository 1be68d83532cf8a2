// Which assignment each place among the functions has had, so that a second one under the same
// place is not taken for a repeat of the first.
//
// Pure: no lock; the caller guards it. Places below the low-water mark are forgotten: the ledger of
// applied pushes refuses what comes under them. After a restore nothing is known: what the state
// inherited is known by partition, and other variables' partitions are not in it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>

namespace mu {

class AssignedPlaces {
 public:
  // True for the first assignment of this place and for repeats of it, partition by partition;
  // false if another variable or table, or another value of the partition, has the place. Values
  // are compared by their hashes, which the caller makes: they are large.
  bool Claim(uint64_t place, uint32_t variable, uint32_t partition, uint64_t value_hash,
             bool table = false) {
    if (place < low_water_) return true;
    const auto [it, first] = places_.try_emplace(place, Place{table, variable, {}});
    if (it->second.variable != variable || it->second.table != table) return false;
    return it->second.values.try_emplace(partition, value_hash).first->second == value_hash;
  }
  void RaiseLowWater(uint64_t place) {
    if (place <= low_water_) return;
    low_water_ = place;
    places_.erase(places_.begin(), places_.lower_bound(place));
  }
  // All of them, and the mark: the state is another one, whose mark may be lower.
  void Clear() {
    places_.clear();
    low_water_ = 0;
  }
  size_t size() const { return places_.size(); }

 private:
  struct Place {
    bool table;  // `variable` is a table's id
    uint32_t variable;
    std::map<uint32_t, uint64_t> values;  // hashes, by partition
  };
  uint64_t low_water_ = 0;
  std::map<uint64_t, Place> places_;
};

}  // namespace mu
