#include "psserver/table_keys.h"

#include "absl/strings/str_cat.h"
#include "common/base/status.h"

namespace mu {
namespace {

// Finds the id at fault; `Holds` failed for one of them.
absl::Status BadId(const RowSegment& segment, uint32_t partition) {
  const pb::TableProto& table = segment.table->definition->proto;
  for (const int64_t id : segment.ids) {
    if (id < 0 || static_cast<uint64_t>(id) >= table.rows()) {
      return absl::OutOfRangeError(absl::StrCat("id ", id, " is outside of table '", table.name(),
                                                "', which has ids 0 to ", table.rows() - 1));
    }
    if (!segment.partition->Holds(id)) {
      return absl::InvalidArgumentError(absl::StrCat("id ", id, " of table '", table.name(),
                                                     "' does not belong to partition ", partition));
    }
  }
  return absl::InternalError("no id is at fault");
}

}  // namespace

absl::Status ResolveTables(const StoreDirectory& directory,
                           const google::protobuf::RepeatedPtrField<pb::TableKeys>& tables,
                           PayloadReader* payload, std::vector<RowSegment>* segments) {
  for (const pb::TableKeys& keys : tables) {
    const StoredTable* table = directory.table(keys.table());
    if (table == nullptr) {
      return absl::InvalidArgumentError(
          absl::StrCat("there is no table with id ", keys.table(), " here"));
    }
    if (keys.partitions_size() != keys.counts_size()) {
      return absl::InvalidArgumentError("a request's partitions and counts differ in number");
    }
    for (int i = 0; i < keys.partitions_size(); ++i) {
      const uint32_t p = keys.partitions(i);
      if (p >= table->partitions.size() || table->partitions[p] == nullptr) {
        return absl::InvalidArgumentError(absl::StrCat(
            "partition ", p, " of table '", table->definition->proto.name(), "' is not held here"));
      }
      MU_ASSIGN_OR_RETURN(const int64_t* ids, payload->Take<int64_t>(keys.counts(i)));
      RowSegment segment{table, table->partitions[p].get(), p,
                         absl::MakeConstSpan(ids, keys.counts(i))};
      bool good = true;
      for (const int64_t id : segment.ids) good &= segment.partition->Holds(id);
      if (!good) return BadId(segment, p);
      segments->push_back(segment);
    }
  }
  return absl::OkStatus();
}

}  // namespace mu
