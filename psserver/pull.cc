#include "psserver/pull.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/rpc/frame.h"
#include "psserver/held.h"
#include "psserver/payload.h"
#include "psserver/product.h"
#include "psserver/table_keys.h"

namespace mu {
namespace {

// Of a frame beside its payload and what its header holds.
constexpr uint64_t kHeaderBytes = 64;

struct RowsOfVariable {
  const VariablePartition* partition;
  uint64_t first;
  uint64_t count;
  uint64_t bytes() const { return count * partition->row_bytes(); }
};

absl::StatusOr<RowsOfVariable> RowsOf(const VariablePartition& partition,
                                      const pb::VariableKey& key) {
  const uint64_t held = partition.rows();
  if (key.rows() == 0) return RowsOfVariable{&partition, 0, held};
  if (key.first_row() <= held && key.rows() <= held - key.first_row())
    return RowsOfVariable{&partition, key.first_row(), key.rows()};
  return absl::OutOfRangeError(absl::StrCat(
      "rows ", key.first_row(), " to ", key.first_row() + key.rows(), " are not within the ", held,
      " rows of partition ", key.partition(), " of the variable with id ", key.variable()));
}

template <typename Stored>
bool HoldsPartition(const Stored* item, uint32_t partition) {
  return item != nullptr && partition < item->partitions.size() &&
         item->partitions[partition] != nullptr;
}

}  // namespace

bool HoldsAll(const StoreDirectory& directory, const pb::PullRequest& request) {
  const auto of_variable = [&](const auto& key) {
    return HoldsPartition(directory.variable(key.variable()), key.partition());
  };
  return std::all_of(request.variables().begin(), request.variables().end(), of_variable) &&
         std::all_of(request.products().begin(), request.products().end(), of_variable) &&
         std::all_of(request.tables().begin(), request.tables().end(), [&](const auto& keys) {
           return std::all_of(keys.partitions().begin(), keys.partitions().end(), [&](uint32_t p) {
             return HoldsPartition(directory.table(keys.table()), p);
           });
         });
}

absl::StatusOr<Buffer> ExecutePull(const StoreDirectory& directory, const pb::PullRequest& request,
                                   absl::Span<const char> payload, const pb::PullReply& header,
                                   uint64_t most_bytes, ComputeThreads* threads) {
  const AlignedPayload aligned(payload);
  PayloadReader reader(aligned.bytes());
  std::vector<RowSegment> segments;
  MU_RETURN_IF_ERROR(ResolveTables(directory, request.tables(), &reader, &segments));
  reader.Align();
  MU_ASSIGN_OR_RETURN(const std::vector<ProductPart> products,
                      ResolveProducts(directory, request.products(), &reader));
  MU_RETURN_IF_ERROR(reader.ExpectEnd());

  uint64_t bytes = 0;
  std::vector<RowsOfVariable> variables;
  variables.reserve(request.variables_size());
  for (const pb::VariableKey& key : request.variables()) {
    MU_ASSIGN_OR_RETURN(const StoredVariable* variable,
                        HeldVariable(directory, key.variable(), key.partition()));
    MU_ASSIGN_OR_RETURN(variables.emplace_back(),
                        RowsOf(*variable->partitions[key.partition()], key));
    bytes += PaddedTo8(variables.back().bytes());
  }
  for (const RowSegment& segment : segments) {
    bytes += segment.ids.size() * segment.table->definition->dim * sizeof(float);
  }
  for (const ProductPart& product : products) bytes += PaddedTo8(product.out_bytes);
  if (bytes + kHeaderBytes + header.ByteSizeLong() > most_bytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the reply to this pull would have ", bytes, " bytes, but a message has ", most_bytes,
        " at most; use smaller batches, split large variables into more partitions, or start more "
        "servers"));
  }

  FrameWriter frame(header, bytes);
  char* out = frame.payload;
  const auto pad = [&out](uint64_t size) {
    std::memset(out + size, 0, PaddedTo8(size) - size);
    out += PaddedTo8(size);
  };
  for (const RowsOfVariable& rows : variables) {
    rows.partition->ReadRows(rows.first, rows.count, out);
    pad(rows.bytes());
  }
  for (size_t s = 0; s < segments.size(); ++s) {
    const RowSegment& segment = segments[s];
    if (s + 1 < segments.size()) segments[s + 1].partition->Prefetch(segments[s + 1].ids);
    segment.partition->Pull(segment.ids, request.read_only(), reinterpret_cast<float*>(out));
    out += segment.ids.size() * segment.table->definition->dim * sizeof(float);
  }
  std::vector<float*> outs;
  outs.reserve(products.size());
  for (const ProductPart& product : products) {
    outs.push_back(reinterpret_cast<float*>(out));
    pad(product.out_bytes);
  }
  threads->ForEach(products.size(), [&](size_t p) { products[p].Compute(outs[p]); });
  return std::move(frame.buffer).Finish();
}

}  // namespace mu
