#include "common/client/health_command.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/process/daemon.h"
#include "common/process/flags.h"
#include "common/process/tls_flags.h"
#include "common/rpc/health.h"

namespace mu {

bool IsHealthCommand(int argc, const char* const* argv) {
  return argc > 1 && std::string(argv[1]) == "health";
}

int HealthMain(int argc, const char* const* argv, pb::Role callee,
               const MakeTransport& make_transport) {
  std::string address, service;
  TlsFiles tls;
  double timeout_seconds = 2;
  const std::string program = NameOf(callee);
  CLI::App app("Whether the process at an address is healthy: exit code 0, else 4", program);
  CLI::App* const health = app.add_subcommand("health", "asks a running process");
  health->add_option("address", address, "Where it listens")->required()->type_name("HOST:PORT");
  health
      ->add_option("--service", service,
                   "Nothing: does it do what it is there for? live: need it not be started again?")
      ->check(CLI::IsMember({"", kLive}));
  health->add_option("--timeout", timeout_seconds, "Seconds in which it must answer")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  AddTlsFlags(health, &tls);
  FinishFlags(&app, program);
  try {
    ParseFlags(&app, argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kExitOk : kExitBadInput;
  }
  const auto complain = [&](const absl::Status& status) {
    std::fprintf(stderr, "%s health: %s\n", program.c_str(), std::string(status.message()).c_str());
  };
  absl::Status status = CheckAddress("address", address);
  if (status.ok()) status = CheckTlsFiles(tls, pb::ROLE_UNSPECIFIED);
  if (!status.ok()) {
    complain(status);
    return kExitBadInput;
  }
  const auto transport = make_transport({.tls = tls});
  status =
      CheckHealth(*transport->Connect(address, callee), service, absl::Seconds(timeout_seconds));
  if (status.ok()) return kExitOk;
  complain(Annotate(status, address));
  return kExitInfrastructure;
}

}  // namespace mu
