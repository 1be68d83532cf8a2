// Sorts the ids of a request by server and partition, so that each server gets its own in the order
// of partitions. Buffers are kept between steps. Not thread safe.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "common/sharding/routing.h"
#include "proto/psserver.pb.h"

namespace mu {

// One table's ids, by a counting sort over the partitions in the order of TableRoute::order.
class GroupedIds {
 public:
  // OUT_OF_RANGE (ERROR_USER) naming the table and the first id that it does not have.
  absl::Status Group(const TableRoute& table, absl::Span<const int64_t> ids);

  const TableRoute& table() const { return *table_; }
  // All ids, sorted; and the position that each had.
  const std::vector<int64_t>& ids() const { return ids_; }
  const std::vector<uint32_t>& origins() const { return origins_; }
  // The range in ids() that belongs to a server.
  size_t begin(size_t server) const { return begins_[table_->server_begin[server]]; }
  size_t end(size_t server) const { return begins_[table_->server_begin[server + 1]]; }
  // Appends the server's partitions that have ids. Nothing if none have.
  void AddKeys(size_t server, google::protobuf::RepeatedPtrField<muster::TableKeys>* keys) const;

 private:
  const TableRoute* table_ = nullptr;
  std::vector<uint32_t> rank_;    // of each partition in TableRoute::order
  std::vector<uint32_t> begins_;  // in ids_, of each rank; one more at the end
  std::vector<uint32_t> next_;
  std::vector<uint32_t> ranks_of_ids_;
  std::vector<int64_t> ids_;
  std::vector<uint32_t> origins_;
};

}  // namespace mu
