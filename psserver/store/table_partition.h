// One partition of an embedding table: a directly indexed array of rows [value | slots] and a
// bitmap of those that exist, with another one above it, of its pages that are not empty: a table
// may have a trillion rows, of which few exist. Memory is taken as rows are touched.
//
// Thread safe: one thread at a time works in a partition, under its mutex. Ids are global; the
// caller has checked that they belong here (Holds).
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/base/mutex.h"
#include "common/sharding/initializer.h"
#include "proto/table.pb.h"
#include "psserver/optimizer/optimizer.h"
#include "psserver/store/cut_copies.h"
#include "psserver/store/partition_load.h"
#include "psserver/store/table_cut.h"
#include "psserver/store/zero_memory.h"

namespace mu {

// What the partitions of a table share.
struct TableDefinition {
  explicit TableDefinition(const muster::TableProto& table);

  const muster::TableProto proto;
  const RowInitializer initializer;
  const RowOptimizer optimizer;
  const size_t dim;
  const size_t stride;  // floats of a row with its slots

  // Columns of a row that one part has: part 0 is the value, part 1 + K is slot K.
  struct Columns {
    size_t begin;
    size_t count;
  };
  size_t parts() const { return 1 + optimizer.slots().size(); }
  Columns ColumnsOf(size_t part) const;

  uint64_t LocalRow(uint64_t id) const {
    return shift_ >= 0 ? id >> shift_ : id / proto.partitions();
  }
  uint32_t PartitionOf(uint64_t id) const {
    return static_cast<uint32_t>(shift_ >= 0 ? id & (proto.partitions() - 1)
                                             : id % proto.partitions());
  }

 private:
  int shift_;  // log2 of the number of partitions; -1 if that is none
};

class TablePartition {
 public:
  static absl::StatusOr<std::unique_ptr<TablePartition>> Create(
      std::shared_ptr<const TableDefinition> definition, uint32_t partition);

  bool Holds(int64_t id) const {
    return static_cast<uint64_t>(id) < definition_->proto.rows() &&
           definition_->PartitionOf(id) == partition_;
  }
  // Brings the rows of (a first part of) `ids` towards the processor.
  void Prefetch(absl::Span<const int64_t> ids) const;

  // Copies the values of `ids` to `out` [ids, dim]. A row that does not exist is created, or, if
  // `read_only`, only computed.
  void Pull(absl::Span<const int64_t> ids, bool read_only, float* out);
  // Applies `gradients` [ids, dim] in order; creates missing rows first. The table has an
  // optimizer, and `rates` are its rates of the step.
  void Push(absl::Span<const int64_t> ids, const float* gradients, const StepRates& rates);

  // All of these rows, which it Holds, exist.
  bool HasAll(absl::Span<const int64_t> ids) const;
  // Sets values; missing rows are created first. The optimizer's slots keep what they hold, or go
  // with the values (RowOptimizer::AdoptRow).
  void AssignRows(absl::Span<const int64_t> ids, const float* values);
  // Appends rows that exist, at most `most`, ascending by id, to `ids` and `values`. *position
  // begins with 0. False: there are no more; true may come without a row.
  bool Scan(uint64_t* position, size_t most, std::vector<int64_t>* ids,
            std::vector<float>* values) const;

  struct Usage {
    uint64_t rows = 0;    // that exist
    uint64_t bytes = 0;   // of their values and slots
    uint64_t memory = 0;  // of the pages in which these lie, and the marks of rows that exist
  };
  Usage usage() const;
  uint64_t rows() const;
  uint64_t bytes() const { return rows() * row_bytes(); }

  // Pushes that changed it since the job began.
  uint64_t updates() const;
  PartitionLoad load() const;
  void SetUpdates(uint64_t updates);

  // The ids of the rows that exist, ascending.
  std::vector<int64_t> Ids() const;
  // Sets columns [begin, begin + count) of rows, creating rows that do not exist with zeros
  // elsewhere. Not during a cut.
  void SetColumns(absl::Span<const int64_t> ids, size_t begin, size_t count, const float* in);

  // A cut: the state of the moment of BeginCut can be read, bit by bit and in passes over the rows,
  // while it changes.
  absl::StatusOr<std::unique_ptr<TableCut>> PrepareCut(CutCopies* copies) const;
  void BeginCut(std::unique_ptr<TableCut> cut);
  // Without a cut these read nothing.
  uint64_t CutRows() const;
  uint64_t CutUpdates() const;
  // The next ids, at most `most`, ascending; *position begins with 0. 0 at the end.
  size_t ReadCutIds(uint64_t* position, size_t most, int64_t* out) const;
  // The same for columns [begin, begin + count) of the rows [value | slots]. `last`: of each row,
  // nothing will be read again after this, so copies of it need not be made.
  size_t ReadCut(uint64_t* position, size_t begin, size_t count, size_t most, bool last,
                 float* out);
  void EndCut();

 private:
  TablePartition(std::shared_ptr<const TableDefinition> definition, uint32_t partition)
      : definition_(std::move(definition)), partition_(partition) {}

  static constexpr uint64_t kPageBytes = 4096;  // that the kernel gives at a time
  static constexpr uint64_t kBlockWords = kPageBytes / sizeof(uint64_t);  // 32,768 rows

  float* Row(int64_t id) const { return rows_ + definition_->LocalRow(id) * definition_->stride; }
  bool Exists(uint64_t local) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return (exists_[local / 64] >> (local % 64)) & 1;
  }
  // Marks the row; true if it was not there before.
  bool Mark(uint64_t local) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Counts the pages of a new row that have none yet.
  void CountPages(uint64_t local) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  uint64_t row_bytes() const { return definition_->stride * sizeof(float); }
  uint64_t words() const { return (capacity_ + 63) / 64; }  // of exists_
  // The first word of exists_ from `word` on that has a row; words() if there is none. Reads
  // no page of exists_ that has never been written, and no more than two.
  uint64_t NextWord(uint64_t word) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void CreateRow(int64_t id, uint64_t local) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Calls visit(local, row) for rows of the cut from *position on until it gave `most`.
  template <typename Visit>
  size_t VisitCut(uint64_t* position, size_t most, Visit visit) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::shared_ptr<const TableDefinition> definition_;
  const uint32_t partition_;
  ZeroMemory memory_;
  ZeroMemory bitmap_;
  ZeroMemory blocks_;
  ZeroMemory pages_;
  uint64_t capacity_ = 0;
  float* rows_ = nullptr;  // contents guarded by mutex_
  mutable Mutex mutex_;
  uint64_t* exists_ ABSL_PT_GUARDED_BY(mutex_) = nullptr;
  // A bit for each kBlockWords words of exists_: whether they have a row.
  uint64_t* used_ ABSL_PT_GUARDED_BY(mutex_) = nullptr;
  uint64_t used_blocks_ ABSL_GUARDED_BY(mutex_) = 0;
  // A bit for each page of the rows: whether one that exists lies in it.
  uint64_t* touched_ ABSL_PT_GUARDED_BY(mutex_) = nullptr;
  uint64_t touched_pages_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t count_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t updates_ ABSL_GUARDED_BY(mutex_) = 0;
  mutable PartitionLoad load_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<TableCut> cut_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace mu
