#include "common/rpc/grpc_bytes.h"

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/rpc/status_proto.h"

namespace mu {
namespace {

constexpr size_t kCopyBelow = 256;
constexpr uintptr_t kAlignment = 16;
// Both travel as HTTP/2 headers, whose size is limited (see MaxMetadataBytes in grpc_transport.cc).
constexpr size_t kMaxMessageText = 64 << 10;

void Release(void* owner) { delete static_cast<std::shared_ptr<const void>*>(owner); }

}  // namespace

grpc::ByteBuffer ToByteBuffer(const Buffer& buffer) {
  if (buffer.size() < kCopyBelow || buffer.owner() == nullptr) {
    grpc::Slice slice(buffer.data(), buffer.size());
    return grpc::ByteBuffer(&slice, 1);
  }
  // gRPC only reads what it sends.
  grpc::Slice slice(const_cast<char*>(buffer.data()), buffer.size(), Release,
                    new std::shared_ptr<const void>(buffer.owner()));
  return grpc::ByteBuffer(&slice, 1);
}

Buffer FromByteBuffer(const grpc::ByteBuffer& bytes) {
  if (!bytes.Valid() || bytes.Length() == 0) return Buffer();
  grpc::Slice single;
  if (bytes.TrySingleSlice(&single).ok() &&
      reinterpret_cast<uintptr_t>(single.begin()) % kAlignment == 0) {
    auto owner = std::make_shared<const grpc::Slice>(std::move(single));
    // Short slices hold their bytes within themselves: ask the one that stays.
    const char* data = reinterpret_cast<const char*>(owner->begin());
    if (reinterpret_cast<uintptr_t>(data) % kAlignment == 0) {
      const size_t size = owner->size();
      return Buffer(std::move(owner), data, size);
    }
  }
  MutableBuffer buffer(bytes.Length());
  std::vector<grpc::Slice> slices;
  if (!bytes.Dump(&slices).ok()) return Buffer();
  char* to = buffer.data();
  for (const grpc::Slice& slice : slices) {
    std::memcpy(to, slice.begin(), slice.size());
    to += slice.size();
  }
  return std::move(buffer).Finish();
}

grpc::Status ToGrpcStatus(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  const auto code = static_cast<grpc::StatusCode>(status.code());
  std::string message(status.message());
  if (message.size() > kMaxMessageText) {
    message.resize(kMaxMessageText);
    message += "...";
  }
  pb::StatusProto proto = ToProto(status);
  if (proto.details().empty()) return grpc::Status(code, message);
  // The message is beside it already; saying it twice would halve the room.
  proto.clear_message();
  return grpc::Status(code, message, proto.SerializeAsString());
}

absl::Status FromGrpcStatus(const grpc::Status& status) {
  if (status.ok()) return absl::OkStatus();
  pb::StatusProto proto;
  if (status.error_details().empty() || !proto.ParseFromString(status.error_details()))
    proto.Clear();
  proto.set_code(static_cast<int>(status.error_code()));
  proto.set_message(status.error_message());
  return FromProto(proto);
}

}  // namespace mu
