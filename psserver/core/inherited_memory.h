// What a restored state knew before: for each partition the pushes that the file it was read from
// contains, so that none of them is applied to that partition again.
//
// The files of a checkpoint are taken at different moments, and a restore onto another number of
// servers brings partitions of several files to one server. So a push may be new to one partition
// of a server and known to the next; it is applied to the former only. Partitions of one file share
// one memory.
//
// A value: copyable, not synchronised. Its size is bounded by the files' (which the ledger bounds)
// and falls with the low-water mark.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "psserver/core/applied_steps.h"

namespace mu {

struct PartitionKey {
  enum class Kind : uint8_t { kVariable, kTable };
  Kind kind = Kind::kVariable;
  uint32_t id = 0;
  uint32_t partition = 0;
  friend auto operator<=>(const PartitionKey&, const PartitionKey&) = default;
};

class InheritedMemory {
 public:
  // Adds the memory of a source; returns its number. Nothing that is below the low-water mark is
  // kept.
  size_t Add(AppliedSteps steps);
  // The partition contains what memory number `memory` names, beside what it inherited before.
  void Inherit(const PartitionKey& partition, size_t memory);

  bool Contains(const PartitionKey& partition, const PushId& push) const;
  // Whether any memory names the push: if not, no partition contains it.
  bool Knows(const PushId& push) const;

  // Functions below it are finished. A lower mark than before is ignored.
  void RaiseLowWater(uint64_t function);
  // Raising the mark to this forgets about half of what is left; 0 if nothing is.
  uint64_t MiddleFunction() const;

  bool empty() const { return entries() == 0; }
  size_t entries() const;  // ranges of steps
  // By number; those that are empty stay so that numbers do.
  const std::vector<AppliedSteps>& memories() const { return memories_; }
  // Of the partition; may name empty ones.
  std::vector<size_t> MemoriesOf(const PartitionKey& partition) const;

 private:
  uint64_t low_water_ = 0;
  std::vector<AppliedSteps> memories_;
  std::map<PartitionKey, std::set<size_t>> inherited_;
};

}  // namespace mu
