// Between our types and gRPC's: buffers without a copy where that is possible, statuses with their
// payloads.
#pragma once

#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/status.h>

#include "absl/status/status.h"
#include "common/rpc/buffer.h"

namespace mu {

// One slice that holds the buffer's owner; small buffers are copied, which is cheaper.
grpc::ByteBuffer ToByteBuffer(const Buffer& buffer);

// The bytes in one piece that begins at a multiple of 16: gRPC's own slice where it is like that,
// else a copy.
Buffer FromByteBuffer(const grpc::ByteBuffer& bytes);

// Standard code and message; the payloads go into the error details as a StatusProto
// (google.rpc.Status).
grpc::Status ToGrpcStatus(const absl::Status& status);
absl::Status FromGrpcStatus(const grpc::Status& status);

}  // namespace mu
