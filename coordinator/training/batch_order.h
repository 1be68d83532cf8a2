// Puts batches that arrive in any order into the order of their dataset: by lease, then by batch.
// Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>

namespace mu {

template <typename Batch>
class BatchOrder {
 public:
  // How many batches each lease of the epoch has.
  explicit BatchOrder(std::map<uint64_t, uint32_t> batches_by_lease)
      : leases_(std::move(batches_by_lease)), lease_(leases_.begin()) {}

  void Add(uint64_t lease, uint32_t batch, Batch values) {
    waiting_.insert_or_assign({lease, batch}, std::move(values));
  }
  // The batch whose turn it is; nothing until it has arrived, and at the end.
  std::optional<Batch> Next() {
    while (lease_ != leases_.end() && batch_ >= lease_->second) {
      ++lease_;
      batch_ = 0;
    }
    if (lease_ == leases_.end()) return std::nullopt;
    auto found = waiting_.extract({lease_->first, batch_});
    if (found.empty()) return std::nullopt;
    ++batch_;
    return std::move(found.mapped());
  }
  size_t waiting() const { return waiting_.size(); }

 private:
  const std::map<uint64_t, uint32_t> leases_;
  std::map<uint64_t, uint32_t>::const_iterator lease_;
  uint32_t batch_ = 0;  // whose turn it is, of lease_
  std::map<std::pair<uint64_t, uint32_t>, Batch> waiting_;
};

}  // namespace mu
