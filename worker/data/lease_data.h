// The records of one lease, parsed, in the order of its permutation, ready to be cut into batches.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "common/records/column_set.h"
#include "common/tensor/tensor.h"

namespace mu {

// Immutable, therefore thread safe.
class LeaseData {
 public:
  // What reading found besides good records.
  struct Marked {
    uint32_t before;     // the good record that it stands before, in file order
    std::string reason;  // "file:line: what is wrong"
  };
  struct Bad {
    uint32_t records = 0;
    std::string first;           // reason of the first
    std::vector<Marked> marked;  // all of them, of a lease that keeps the order of its files
  };

  // `permutation` 0 keeps the order of `columns`; anything else seeds a Fisher-Yates shuffle
  // (Knuth, TAOCP 2, 3.4.2).
  LeaseData(ColumnSet columns, Bad bad, uint64_t permutation, uint32_t batch_size);

  uint32_t records() const { return columns_.rows(); }         // good and selected
  uint32_t bad_records() const { return bad_.records; }        // left out
  const std::string& first_bad() const { return bad_.first; }  // empty if there is none
  const std::vector<Marked>& marked() const { return bad_.marked; }
  uint32_t batches() const {
    return static_cast<uint32_t>((uint64_t{records()} + batch_size_ - 1) / batch_size_);
  }
  // Fresh tensors [records, ...]; every batch but the last is full. Past the end: no records,
  // columns of no rows.
  Batch MakeBatch(uint32_t index) const;
  size_t bytes() const { return columns_.bytes() + order_.size() * sizeof(uint32_t); }

 private:
  const ColumnSet columns_;  // in file order
  const Bad bad_;
  const uint32_t batch_size_;
  std::vector<uint32_t> order_;  // rows of columns_, each once; constant after construction
};

}  // namespace mu
