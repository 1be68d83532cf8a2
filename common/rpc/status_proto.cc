#include "common/rpc/status_proto.h"

#include <string>

#include "absl/strings/cord.h"
#include "common/base/text.h"

namespace mu {

pb::StatusProto ToProto(const absl::Status& status) {
  pb::StatusProto proto;
  if (status.ok()) return proto;
  proto.set_code(static_cast<int>(status.code()));
  // Names of files and texts of the system may be any bytes; a message with them would not parse.
  proto.set_message(ValidUtf8(status.message()));
  status.ForEachPayload([&](absl::string_view url, const absl::Cord& payload) {
    google::protobuf::Any* detail = proto.add_details();
    detail->set_type_url(url.data(), url.size());
    detail->set_value(std::string(payload));
  });
  return proto;
}

absl::Status FromProto(const pb::StatusProto& proto) {
  absl::Status status(static_cast<absl::StatusCode>(proto.code()), proto.message());
  for (const google::protobuf::Any& detail : proto.details())
    status.SetPayload(detail.type_url(), absl::Cord(detail.value()));
  return status;
}

}  // namespace mu
