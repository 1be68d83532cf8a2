#include <cstdio>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/status.h"
#include "common/env/file.h"
#include "common/env/host_port.h"
#include "common/rpc/transport.h"
#include "common/rpc/typed.h"
#include "coordinator/cli/commands.h"
#include "coordinator/cli/status_table.h"
#include "coordinator/training/exit_code.h"
#include "proto/coordinator.pb.h"

namespace mu {
namespace {

// Why nobody can be asked at `address`; empty: somebody can be.
std::string WhyNoAddress(const std::string& address) {
  if (DirectoryExists(address)) {
    const std::string log = JoinPath(address, "logs/coordinator.log");
    return absl::StrCat(address, " is a folder; write HOST:PORT",
                        FileExists(log) ? absl::StrCat(". The last line of ", log,
                                                       " with \"listens at\" has the address")
                                        : "");
  }
  if (SplitHostPort(address).ok()) return "";
  return absl::StrCat(address, " is no address; write HOST:PORT, as the coordinator's log has it ",
                      "(\"listens at\"), for example 127.0.0.1:7000");
}

}  // namespace

int RunStatusCommand(const CliOptions& options) {
  if (const std::string why = WhyNoAddress(options.address); !why.empty()) {
    absl::FPrintF(stderr, "%s\n", why);
    return kExitBadJob;
  }
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
