#include "common/base/status.h"

#include "absl/strings/cord.h"

namespace mu {
namespace {
constexpr char kDetailUrl[] = "type.googleapis.com/muster.ErrorDetail";
}  // namespace

absl::Status WithDetail(absl::Status status, const pb::ErrorDetail& detail) {
  if (!status.ok()) status.SetPayload(kDetailUrl, absl::Cord(detail.SerializeAsString()));
  return status;
}

std::optional<pb::ErrorDetail> DetailOf(const absl::Status& status) {
  const absl::optional<absl::Cord> payload = status.GetPayload(kDetailUrl);
  pb::ErrorDetail detail;
  if (!payload.has_value() || !detail.ParseFromString(std::string(*payload))) return std::nullopt;
  return detail;
}

pb::ErrorKind KindOf(const absl::Status& status) {
  if (const auto detail = DetailOf(status); detail && detail->kind() != pb::ERROR_UNSPECIFIED) {
    return detail->kind();
  }
  switch (status.code()) {
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDeadlineExceeded:
    case absl::StatusCode::kCancelled:
      return pb::ERROR_MACHINE;
    default:
      return pb::ERROR_USER;
  }
}

absl::Status Annotate(const absl::Status& status, absl::string_view context) {
  if (status.ok()) return status;
  absl::Status result(status.code(), absl::StrCat(context, ": ", status.message()));
  status.ForEachPayload(
      [&](absl::string_view url, const absl::Cord& payload) { result.SetPayload(url, payload); });
  return result;
}

}  // namespace mu
