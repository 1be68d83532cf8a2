#include "psserver/scan.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/rpc/frame.h"
#include "psserver/held.h"

namespace mu {
namespace {

constexpr uint64_t kMostRows = 1 << 20;  // of one reply
constexpr uint64_t kHeaderBytes = 128;   // of a frame beside its payload, generously

}  // namespace

absl::StatusOr<Buffer> ExecuteScan(const StoreDirectory& directory, const pb::ScanRequest& request,
                                   uint64_t most_bytes) {
  MU_ASSIGN_OR_RETURN(const StoredTable* table,
                      HeldTable(directory, request.table(), request.partition()));
  const uint64_t row_bytes = sizeof(int64_t) + table->definition->dim * sizeof(float);
  if (most_bytes < kHeaderBytes + row_bytes)
    return absl::InvalidArgumentError("a message has no room for a row");
  const uint64_t most =
      std::min({uint64_t{request.most_rows()}, kMostRows, (most_bytes - kHeaderBytes) / row_bytes});
  if (most == 0) return absl::InvalidArgumentError("a scan asks for at least one row");
  std::vector<int64_t> ids;
  std::vector<float> values;
  uint64_t position = request.position();
  const bool more = table->partitions[request.partition()]->Scan(&position, most, &ids, &values);
  pb::ScanReply header;
  header.set_rows(static_cast<uint32_t>(ids.size()));
  header.set_position(position);
  header.set_end(!more);
  FrameWriter frame(header, ids.size() * row_bytes);
  const size_t id_bytes = ids.size() * sizeof(int64_t);
  if (id_bytes > 0) {
    std::memcpy(frame.payload, ids.data(), id_bytes);
    std::memcpy(frame.payload + id_bytes, values.data(), values.size() * sizeof(float));
  }
  return std::move(frame.buffer).Finish();
}

}  // namespace mu
