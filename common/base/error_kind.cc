#include "common/base/error_kind.h"

#include <string>
#include <utility>

#include "absl/strings/cord.h"

namespace mu {
namespace {
constexpr char kInputFaultUrl[] = "type.googleapis.com/muster.InputFault";
}  // namespace

absl::Status WithKind(absl::Status status, pb::ErrorKind kind, pb::Role role, uint32_t index) {
  pb::ErrorDetail detail = DetailOf(status).value_or(pb::ErrorDetail());
  if (status.ok() || detail.kind() != pb::ERROR_UNSPECIFIED) return status;
  detail.set_kind(kind);
  detail.set_role(role);
  detail.set_index(index);
  return WithDetail(std::move(status), detail);
}

absl::Status FromWire(absl::Status status) {
  if (KindOf(status) == pb::ERROR_MACHINE) return status;  // its code says so
  return WithKind(std::move(status), pb::ERROR_MACHINE);
}

bool IsMachineCode(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDeadlineExceeded:
    case absl::StatusCode::kCancelled:
    case absl::StatusCode::kAborted:
    case absl::StatusCode::kResourceExhausted:
    case absl::StatusCode::kInternal:
    case absl::StatusCode::kUnknown:
      return true;
    default:
      return false;
  }
}

absl::Status WithInputFault(absl::Status status, pb::InputFault::Kind kind, uint32_t file) {
  if (status.ok()) return status;
  pb::InputFault fault;
  fault.set_kind(kind);
  fault.set_file(file);
  status.SetPayload(kInputFaultUrl, absl::Cord(fault.SerializeAsString()));
  return WithKind(std::move(status), pb::ERROR_MACHINE, pb::ROLE_WORKER);
}

pb::InputFault InputFaultOf(const absl::Status& status) {
  const absl::optional<absl::Cord> payload = status.GetPayload(kInputFaultUrl);
  pb::InputFault fault;
  if (!payload.has_value() || !fault.ParseFromString(std::string(*payload))) fault.Clear();
  return fault;
}

}  // namespace mu
