// The servers that a client's routing names.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "common/client/ps_client.h"

namespace mu {

// FAILED_PRECONDITION before SetRouting.
inline absl::StatusOr<std::shared_ptr<const PsClient::View>> KnownView(const PsClient& client) {
  auto view = client.view();
  if (view == nullptr)
    return absl::FailedPreconditionError("the routing to the parameter servers is not known yet");
  return view;
}

}  // namespace mu
