#include "psserver/pull.h"

#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/rpc/frame.h"
#include "psserver/payload.h"
#include "psserver/table_keys.h"

namespace mu {
namespace {

// Of a frame beside its payload and what its header holds.
constexpr uint64_t kHeaderBytes = 64;

}  // namespace

absl::StatusOr<Buffer> ExecutePull(const StoreDirectory& directory, const pb::PullRequest& request,
                                   absl::Span<const char> payload, const pb::PullReply& header,
                                   uint64_t most_bytes) {
  const AlignedPayload aligned(payload);
  PayloadReader reader(aligned.bytes());
  std::vector<RowSegment> segments;
  MU_RETURN_IF_ERROR(ResolveTables(directory, request.tables(), &reader, &segments));
  MU_RETURN_IF_ERROR(reader.ExpectEnd());

  uint64_t bytes = 0;
  std::vector<const VariablePartition*> variables;
  variables.reserve(request.variables_size());
  for (const pb::VariableKey& key : request.variables()) {
    const StoredVariable* variable = directory.variable(key.variable());
    if (variable == nullptr || key.partition() >= variable->partitions.size() ||
        variable->partitions[key.partition()] == nullptr) {
      return absl::InvalidArgumentError(absl::StrCat("partition ", key.partition(),
                                                     " of the variable with id ", key.variable(),
                                                     " is not held here"));
    }
    variables.push_back(variable->partitions[key.partition()].get());
    bytes += PaddedTo8(variables.back()->value_bytes());
  }
  for (const RowSegment& segment : segments) {
    bytes += segment.ids.size() * segment.table->definition->dim * sizeof(float);
  }
  if (bytes + kHeaderBytes + header.ByteSizeLong() > most_bytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the reply to this pull would have ", bytes, " bytes, but a message has ", most_bytes,
        " at most; use smaller batches, split large variables into more partitions, or start more "
        "servers"));
  }

  FrameWriter frame(header, bytes);
  char* out = frame.payload;
  for (const VariablePartition* variable : variables) {
    variable->Read(out);
    const size_t size = variable->value_bytes();
    std::memset(out + size, 0, PaddedTo8(size) - size);
    out += PaddedTo8(size);
  }
  for (size_t s = 0; s < segments.size(); ++s) {
    const RowSegment& segment = segments[s];
    if (s + 1 < segments.size()) segments[s + 1].partition->Prefetch(segments[s + 1].ids);
    segment.partition->Pull(segment.ids, request.read_only(), reinterpret_cast<float*>(out));
    out += segment.ids.size() * segment.table->definition->dim * sizeof(float);
  }
  return std::move(frame.buffer).Finish();
}

}  // namespace mu
