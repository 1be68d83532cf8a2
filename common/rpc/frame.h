// Frames of the data plane: a protobuf header and a raw payload in one buffer.
//
//   uint32 header size (little endian) | header | zeros up to a multiple of 16 | payload
#pragma once

#include <cstdint>
#include <cstring>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/base/status.h"
#include "common/rpc/buffer.h"
#include "google/protobuf/message_lite.h"

namespace mu {

inline constexpr size_t kFrameAlignment = 16;

// What is raw in a payload begins at a multiple of 8.
constexpr uint64_t PaddedTo8(uint64_t bytes) { return (bytes + 7) / 8 * 8; }

// A frame with room for `payload_bytes`, to be filled at `payload`.
struct FrameWriter {
  FrameWriter(const google::protobuf::MessageLite& header, size_t payload_bytes);
  MutableBuffer buffer;
  char* payload;
};

// Parses the header; the payload stays in `frame`. INVALID_ARGUMENT if it is no frame.
absl::StatusOr<absl::Span<const char>> ParseFrame(const Buffer& frame,
                                                  google::protobuf::MessageLite* header);

}  // namespace mu
