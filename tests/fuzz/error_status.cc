// Errors as they arrive through gRPC: a code, then the bytes of the error details.
#include "common/base/check.h"
#include "common/base/status.h"
#include "common/rpc/grpc_bytes.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 1) return 0;
  const std::string details(reinterpret_cast<const char*>(data + 1), size - 1);
  const grpc::Status wire(static_cast<grpc::StatusCode>(data[0]), "what is wrong", details);
  const absl::Status status = mu::FromGrpcStatus(wire);
  const auto detail = mu::DetailOf(status);
  const auto kind = mu::KindOf(status);
  const absl::Status annotated = mu::Annotate(status, "here");
  MU_CHECK(annotated.code() == status.code() && mu::KindOf(annotated) == kind);
  const absl::Status again = mu::FromGrpcStatus(mu::ToGrpcStatus(status));
  MU_CHECK(again.code() == status.code());
  MU_CHECK(mu::DetailOf(again).has_value() == detail.has_value());
  MU_CHECK(mu::KindOf(again) == kind);
  return 0;
}
