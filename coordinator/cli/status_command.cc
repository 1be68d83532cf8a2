#include <cstdio>

#include "absl/strings/str_format.h"
#include "common/base/status.h"
#include "common/rpc/transport.h"
#include "common/rpc/typed.h"
#include "coordinator/cli/commands.h"
#include "coordinator/cli/status_table.h"
#include "coordinator/training/exit_code.h"
#include "proto/coordinator.pb.h"

namespace mu {

int RunStatusCommand(const CliOptions& options) {
  const std::unique_ptr<Transport> transport = NewGrpcTransport({.tls = options.tls});
  const std::shared_ptr<Channel> channel =
      transport->Connect(options.address, pb::ROLE_COORDINATOR);
  const auto status =
      Call<pb::GetStatusReply>(*channel, "/muster.Coordinator/GetStatus", pb::GetStatusRequest(),
                               {.timeout = absl::Seconds(5)});
  if (!status.ok()) {
    absl::FPrintF(stderr,
                  "no coordinator answers at %s: %s; its log names the address it listens at\n",
                  options.address, std::string(status.status().message()));
    return ExitCodeOf(status.status());
  }
  absl::PrintF("%s", StatusTable(*status));
  return kExitDone;
}

}  // namespace mu
