#include "psserver/store/store_cut.h"

#include <utility>

#include "common/base/status.h"

namespace mu {

absl::StatusOr<std::unique_ptr<StoreCut>> StoreCut::Prepare(
    std::shared_ptr<const StoreDirectory> store, CutCopies* copies) {
  auto cut = std::unique_ptr<StoreCut>(new StoreCut(std::move(store), copies));
  for (const auto& [id, table] : cut->store_->tables) {
    for (const auto& partition : table->partitions) {
      if (partition == nullptr) continue;
      MU_ASSIGN_OR_RETURN(std::unique_ptr<TableCut> mark, partition->PrepareCut(copies));
      cut->tables_.emplace_back(partition.get(), std::move(mark));
    }
  }
  for (const auto& [id, variable] : cut->store_->variables) {
    for (const auto& partition : variable->partitions) {
      if (partition != nullptr) cut->variables_.push_back(partition.get());
    }
  }
  return cut;
}

void StoreCut::Take() {
  for (auto& [partition, mark] : tables_) partition->BeginCut(std::move(mark));
  for (VariablePartition* partition : variables_) partition->BeginCut(copies_);
}

void StoreCut::End() {
  for (auto& [partition, mark] : tables_) partition->EndCut();
  for (VariablePartition* partition : variables_) partition->EndCut();
  tables_.clear();
  variables_.clear();
}

}  // namespace mu
