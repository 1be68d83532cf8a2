// A parameter server of a test makes itself known to the coordinator.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "common/base/version.h"
#include "common/rpc/typed.h"
#include "coordinator/cluster/coordinator.h"
#include "proto/coordinator.pb.h"

namespace mu::testing {

// `address`: where it listens on `transport`, on which the coordinator listens as well.
inline absl::Status RegisterServer(Transport& transport, const Coordinator& coordinator,
                                   const std::string& address) {
  pb::RegisterRequest request;
  request.set_role(pb::ROLE_PSSERVER);
  request.set_address(address);
  request.set_incarnation(4);
  request.set_protocol(kProtocol);
  return Call<pb::RegisterReply>(*transport.Connect(coordinator.address(), pb::ROLE_COORDINATOR),
                                 "/muster.Coordinator/Register", request)
      .status();
}

}  // namespace mu::testing
