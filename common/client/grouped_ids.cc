#include "common/client/grouped_ids.h"

#include "absl/strings/str_cat.h"
#include "common/base/status.h"

namespace mu {

absl::Status GroupedIds::Group(const TableRoute& table, absl::Span<const int64_t> ids) {
  table_ = &table;
  const uint32_t partitions = table.proto.partitions();
  rank_.resize(partitions);
  for (uint32_t r = 0; r < partitions; ++r) rank_[table.order[r]] = r;
  begins_.assign(partitions + 1, 0);
  ranks_of_ids_.resize(ids.size());
  const uint64_t rows = table.proto.rows();
  bool good = true;
  for (size_t i = 0; i < ids.size(); ++i) {
    const uint64_t id = static_cast<uint64_t>(ids[i]);
    good &= id < rows;
    const uint32_t rank = rank_[table.partition_of(id)];
    ranks_of_ids_[i] = rank;
    ++begins_[rank + 1];
  }
  if (!good) {
    for (const int64_t id : ids) {
      if (static_cast<uint64_t>(id) < rows) continue;
      pb::ErrorDetail detail;
      detail.set_kind(pb::ERROR_USER);
      return WithDetail(
          absl::OutOfRangeError(absl::StrCat("id ", id, " is outside of table '",
                                             table.proto.name(), "', which has ids 0 to ", rows - 1,
                                             "; hash it or create the table with more rows")),
          detail);
    }
  }
  for (uint32_t r = 0; r < partitions; ++r) begins_[r + 1] += begins_[r];
  next_.assign(begins_.begin(), begins_.end() - 1);
  ids_.resize(ids.size());
  origins_.resize(ids.size());
  for (size_t i = 0; i < ids.size(); ++i) {
    const uint32_t position = next_[ranks_of_ids_[i]]++;
    ids_[position] = ids[i];
    origins_[position] = static_cast<uint32_t>(i);
  }
  return absl::OkStatus();
}

void GroupedIds::AddKeys(size_t server,
                         google::protobuf::RepeatedPtrField<pb::TableKeys>* keys) const {
  if (begin(server) == end(server)) return;
  pb::TableKeys* added = keys->Add();
  added->set_table(table_->proto.id());
  for (uint32_t r = table_->server_begin[server]; r < table_->server_begin[server + 1]; ++r) {
    const uint32_t count = begins_[r + 1] - begins_[r];
    if (count == 0) continue;
    added->add_partitions(table_->order[r]);
    added->add_counts(count);
  }
}

}  // namespace mu
