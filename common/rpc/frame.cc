#include "common/rpc/frame.h"

namespace mu {
namespace {

size_t PayloadOffset(size_t header_bytes) {
  return (sizeof(uint32_t) + header_bytes + kFrameAlignment - 1) / kFrameAlignment *
         kFrameAlignment;
}

}  // namespace

FrameWriter::FrameWriter(const google::protobuf::MessageLite& header, size_t payload_bytes)
    : buffer(PayloadOffset(header.ByteSizeLong()) + payload_bytes) {
  const uint32_t header_bytes = static_cast<uint32_t>(header.GetCachedSize());
  const size_t offset = PayloadOffset(header_bytes);
  char* data = buffer.data();
  std::memcpy(data, &header_bytes, sizeof(header_bytes));
  header.SerializeWithCachedSizesToArray(reinterpret_cast<uint8_t*>(data + sizeof(header_bytes)));
  std::memset(data + sizeof(header_bytes) + header_bytes, 0,
              offset - sizeof(header_bytes) - header_bytes);
  payload = data + offset;
}

absl::StatusOr<absl::Span<const char>> ParseFrame(const Buffer& frame,
                                                  google::protobuf::MessageLite* header) {
  uint32_t header_bytes = 0;
  if (frame.size() < sizeof(header_bytes)) {
    return absl::InvalidArgumentError("a frame is shorter than its header's size");
  }
  std::memcpy(&header_bytes, frame.data(), sizeof(header_bytes));
  const size_t offset = PayloadOffset(header_bytes);
  if (header_bytes > frame.size() || offset > frame.size() ||
      !header->ParseFromArray(frame.data() + sizeof(header_bytes),
                              static_cast<int>(header_bytes))) {
    return absl::InvalidArgumentError("a frame's header does not parse");
  }
  return absl::MakeConstSpan(frame.data() + offset, frame.size() - offset);
}

}  // namespace mu
