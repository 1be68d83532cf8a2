// Which records of a file a dataset keeps, by their index in the file (`records: {modulo: 10, keep:
// [9]}`).
#pragma once

#include <cstdint>
#include <vector>

#include "proto/dataset.pb.h"

namespace mu {

// Immutable, therefore thread safe.
class RecordSelection {
 public:
  // What is not below the modulo in `keep` selects nothing.
  explicit RecordSelection(const muster::RecordSelectionProto& proto) : modulo_(proto.modulo()) {
    kept_.resize(modulo_);
    for (uint32_t k : proto.keep()) {
      if (k < modulo_ && !kept_[k]) {
        kept_[k] = true;
        ++kept_per_cycle_;
      }
    }
  }

  bool Keeps(uint64_t record) const { return modulo_ == 0 || kept_[record % modulo_]; }

  // How many of the `count` records from `first` are kept.
  uint64_t Count(uint64_t first, uint64_t count) const {
    if (modulo_ == 0) return count;
    uint64_t kept = count / modulo_ * kept_per_cycle_;
    for (uint64_t i = count / modulo_ * modulo_; i < count; ++i) kept += Keeps(first + i);
    return kept;
  }

 private:
  const uint32_t modulo_;  // 0: all are kept
  std::vector<bool> kept_;
  uint32_t kept_per_cycle_ = 0;
};

}  // namespace mu
