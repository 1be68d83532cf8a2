// One instant of all that a server holds: marks every partition, so that what changes afterwards is
// copied first, and ends the marking when the partitions have been written or the save was given
// up.
//
// Not thread safe; the partitions that it marks are.
#pragma once

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "psserver/store/cut_copies.h"
#include "psserver/store/store.h"

namespace mu {

class StoreCut {
 public:
  // Gets the memory for the marks. `copies` outlives the cut. RESOURCE_EXHAUSTED.
  static absl::StatusOr<std::unique_ptr<StoreCut>> Prepare(
      std::shared_ptr<const StoreDirectory> store, CutCopies* copies);
  ~StoreCut() { End(); }

  // Marks. No change of the store is under way (CutGate::Cut). Once, and short: it touches no rows.
  void Take();
  // What is not written yet can no longer be read.
  void End();

  const StoreDirectory& store() const { return *store_; }

 private:
  StoreCut(std::shared_ptr<const StoreDirectory> store, CutCopies* copies)
      : store_(std::move(store)), copies_(copies) {}

  const std::shared_ptr<const StoreDirectory> store_;
  CutCopies* const copies_;
  std::vector<std::pair<TablePartition*, std::unique_ptr<TableCut>>> tables_;
  std::vector<VariablePartition*> variables_;
};

}  // namespace mu
