// One partition of a variable: whole rows of it, with the optimizer's slots behind them. Part 0 is
// the value, part 1 + K is slot K.
//
// Thread safe: one thread at a time changes a partition, and none reads meanwhile; many read at
// once, so a long product holds up no pull, unless a change waits for it: what comes after the
// change waits for both. Sizes and types are the caller's to check.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/base/shared_mutex.h"
#include "common/sharding/partition.h"
#include "proto/table.pb.h"
#include "psserver/optimizer/optimizer.h"
#include "psserver/store/cut_copies.h"
#include "psserver/store/partition_load.h"
#include "psserver/store/zero_memory.h"

namespace mu {

// What the partitions of a variable share.
struct VariableDefinition {
  explicit VariableDefinition(const muster::VariableProto& variable);

  const muster::VariableProto proto;
  const RowOptimizer optimizer;
  const RowLayout layout;

  int64_t RowsOf(uint32_t partition) const;
  size_t ElementsOf(uint32_t partition) const {
    return RowsOf(partition) * layout.elements_per_row;
  }
  size_t BytesOf(uint32_t partition) const { return RowsOf(partition) * layout.bytes_per_row; }
  size_t SlotBytesOf(uint32_t partition) const {  // of all slots
    return static_cast<size_t>(RowsOf(partition)) * optimizer.slot_floats() * sizeof(float);
  }
  size_t parts() const { return 1 + optimizer.slots().size(); }
};

class VariablePartition {
 public:
  // With its initial values.
  static absl::StatusOr<std::unique_ptr<VariablePartition>> Create(
      std::shared_ptr<const VariableDefinition> definition, uint32_t partition);

  size_t elements() const { return elements_; }
  size_t rows() const { return rows_; }
  size_t columns() const { return static_cast<size_t>(definition_->layout.elements_per_row); }
  size_t row_bytes() const { return static_cast<size_t>(definition_->layout.bytes_per_row); }
  size_t value_bytes() const { return value_bytes_; }
  size_t bytes() const { return value_bytes_ + slot_bytes_; }
  size_t PartBytes(size_t part) const;

  void Read(void* out) const { ReadRows(0, rows_, out); }
  void ReadRows(size_t first, size_t count, void* out) const;
  // Of a float32 variable [n, columns]. out[batch, rows] = x[batch, columns] times the transposed
  // rows; `back`: out[batch, columns] = x[batch, rows] times the rows.
  void Multiply(const float* x, int64_t batch, bool back, float* out) const;
  // What sets values or adds to them lets the optimizer's slots keep what they hold, or go with the
  // values (RowOptimizer::AdoptRows).
  void Assign(const void* value);
  // The same for some rows; `values` has them in this order.
  void AssignRows(absl::Span<const int64_t> rows, const char* values);
  // The variable has an optimizer, and `rates` are its rates of the step.
  void ApplyGradient(const float* gradient, const StepRates& rates);
  void AssignAdd(const void* delta);
  // Of a float32 variable: each value x becomes x + part * (v - x), with its own v. `part` is from
  // 0 to 1, so x never leaves the range between both.
  void MoveTowards(const float* values, float part);
  // To some rows, each once; `delta` has them in this order.
  void AddRows(absl::Span<const int64_t> rows, const void* delta);
  // As Assign or, with rows, AssignRows, by a push.
  void Update(std::optional<absl::Span<const int64_t>> rows, const void* values);

  // As they were saved together: slots are not changed by a value.
  void SetValue(const void* in);
  void SetSlot(size_t slot, const float* in);

  // Pushes that changed it since the job began.
  uint64_t updates() const;
  PartitionLoad load() const;
  void SetUpdates(uint64_t updates);

  // A cut: the state of the moment of BeginCut can be read, bit by bit, while it changes. `copies`
  // outlives the cut.
  void BeginCut(CutCopies* copies);
  uint64_t CutUpdates() const;
  // Bytes [offset, offset + size) of a part. Zeros without a cut.
  void ReadCut(size_t part, size_t offset, size_t size, void* out) const;
  void EndCut();

 private:
  struct Cut {
    CutCopies* copies;
    uint64_t updates;
    bool copied = false;
    ZeroMemory copy;
  };
  VariablePartition(std::shared_ptr<const VariableDefinition> definition, uint32_t partition);
  void PutRows(absl::Span<const int64_t> rows, const char* values)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void PutAll(const void* value) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Rows that did not get their values from gradients.
  void AdoptRows(size_t first, size_t count) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Saves the contents for a cut that has not been written yet.
  void BeforeChange() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void CountRead(uint64_t bytes) const;
  // A slot's floats, in this partition.
  size_t SlotElements(size_t slot) const {
    return rows_ * definition_->optimizer.slots()[slot].width;
  }

  const std::shared_ptr<const VariableDefinition> definition_;
  size_t PartBegin(size_t part) const;  // in memory_

  const size_t rows_;
  const size_t elements_;
  const size_t value_bytes_;
  const size_t slot_bytes_;  // of all slots
  ZeroMemory memory_;        // value, then slots; its contents are guarded by mutex_
  float* slots_ = nullptr;
  // Of load(); those who read count beside each other.
  mutable std::atomic<uint64_t> reads_{0};
  mutable std::atomic<uint64_t> read_bytes_{0};
  mutable SharedMutex mutex_;
  uint64_t updates_ ABSL_GUARDED_BY(mutex_) = 0;
  PartitionLoad load_ ABSL_GUARDED_BY(mutex_);  // its updates
  std::unique_ptr<Cut> cut_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace mu
