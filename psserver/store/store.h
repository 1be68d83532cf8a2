// Everything that one server holds: the partitions of variables and tables that are placed on it.
//
// Thread safe. The directory of definitions is immutable and replaced whole; the partitions in it
// have their own locks.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/mutex.h"
#include "proto/table.pb.h"
#include "psserver/core/definitions_change.h"
#include "psserver/store/table_partition.h"
#include "psserver/store/variable_partition.h"

namespace mu {

struct StoredVariable {
  std::shared_ptr<const VariableDefinition> definition;
  std::vector<std::unique_ptr<VariablePartition>> partitions;  // nullptr: held by another server
};

struct StoredTable {
  std::shared_ptr<const TableDefinition> definition;
  std::vector<std::unique_ptr<TablePartition>> partitions;  // nullptr: held by another server
};

struct StoreDirectory {
  absl::flat_hash_map<uint32_t, std::shared_ptr<StoredVariable>> variables;
  absl::flat_hash_map<uint32_t, std::shared_ptr<StoredTable>> tables;

  StoredVariable* variable(uint32_t id) const {
    const auto it = variables.find(id);
    return it == variables.end() ? nullptr : it->second.get();
  }
  StoredTable* table(uint32_t id) const {
    const auto it = tables.find(id);
    return it == tables.end() ? nullptr : it->second.get();
  }
  // In the order of their ids, so that whatever walks them is deterministic.
  std::vector<StoredVariable*> SortedVariables() const;
  std::vector<StoredTable*> SortedTables() const;
};

struct StoreUsage {
  uint64_t bytes = 0;   // of values and slots in use
  uint64_t memory = 0;  // that they take: of tables, whole pages
  uint64_t rows = 0;    // table rows that exist
};
StoreUsage UsageOf(const StoreDirectory& directory);
uint64_t VariableBytes(const StoreDirectory& directory);  // of their values, without slots

// The same partitions with initial values and without slots, for somebody who only reads them.
// RESOURCE_EXHAUSTED without memory.
absl::StatusOr<std::shared_ptr<const StoreDirectory>> WithoutSlots(const StoreDirectory& directory);

class Store {
 public:
  // Adds the variables and tables of `routing` that are not here yet, with the partitions placed on
  // server `index`. All or nothing. FAILED_PRECONDITION if one is here with another definition or
  // placement, INVALID_ARGUMENT if one is no proper definition, RESOURCE_EXHAUSTED without memory.
  // `replace`: a contradiction is no error, what is here is over and everything is made anew.
  // Returns what was done. Requests under way keep what they work on alive.
  // Variables take their memory here: before any is made, `admit` (null: nobody) is asked whether
  // values and slots may take so much memory then, rows that exist among them. Its error is
  // returned.
  using Admit = std::function<absl::Status(uint64_t bytes)>;
  absl::StatusOr<DefinitionsChange> Configure(const muster::RoutingProto& routing, uint32_t index,
                                              bool replace = false, const Admit& admit = nullptr);

  // Back to the initial values of all that is configured. Requests under way keep what they work on
  // alive: let none run.
  absl::Status Reset();

  std::shared_ptr<const StoreDirectory> directory() const;
  StoreUsage Usage() const { return UsageOf(*directory()); }

 private:
  absl::Status Add(const muster::RoutingProto& routing, uint32_t index, const Admit& admit,
                   StoreDirectory* directory);

  mutable Mutex mutex_;
  Mutex configure_mutex_ ABSL_ACQUIRED_BEFORE(mutex_);  // one change at a time
  uint32_t index_ ABSL_GUARDED_BY(configure_mutex_) = 0;
  std::shared_ptr<const StoreDirectory> directory_ ABSL_GUARDED_BY(mutex_) =
      std::make_shared<const StoreDirectory>();
};

}  // namespace mu
