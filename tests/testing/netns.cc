#include "tests/testing/netns.h"

#include <unistd.h>

#include <atomic>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status.h"
#include "common/env/file.h"

namespace mu::testing {
namespace {

constexpr char kEth[] = "eth0";  // the cable's end inside

absl::Status Ip(const std::vector<std::string>& args) {
  MU_ASSIGN_OR_RETURN(const TempDirectory directory, TempDirectory::Create("muster-ip"));
  SubprocessOptions options;
  options.path = "ip";
  options.args = args;
  options.output_file = directory.path() + "/output";
  MU_ASSIGN_OR_RETURN(const std::unique_ptr<Subprocess> process, Subprocess::Start(options));
  const ExitStatus exit = process->Wait();
  if (exit.ok()) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat("ip ", absl::StrJoin(args, " "), ": ",
                                                    exit.ToString(), ": ",
                                                    ReadFile(options.output_file).value_or("")));
}

}  // namespace

absl::Status NetworkNamespace::Usable() {
  if (geteuid() != 0) return absl::FailedPreconditionError("network namespaces need root");
  const absl::Status status = Ip({"netns", "list"});
  if (absl::IsNotFound(status))
    return absl::FailedPreconditionError("there is no program `ip`; install iproute2");
  MU_RETURN_IF_ERROR(status);
  return Create().status();
}

NetworkNamespace::NetworkNamespace(int number) {
  // A /30 each
  const int net = static_cast<int>((static_cast<int64_t>(getpid()) * 4 + number) % 32768) * 4;
  const auto ip = [net](int host) {
    return absl::StrCat("198.", 18 + (net >> 16), ".", (net >> 8) & 255, ".", (net & 255) + host);
  };
  name_ = absl::StrCat("muster-", getpid(), "-", number);
  cable_ = absl::StrCat("mu", getpid(), "n", number);
  outside_ip_ = ip(1);
  inside_ip_ = ip(2);
}

absl::StatusOr<std::unique_ptr<NetworkNamespace>> NetworkNamespace::Create() {
  static std::atomic<int> numbers{0};
  std::unique_ptr<NetworkNamespace> net(new NetworkNamespace(numbers++));
  const std::string &name = net->name_, &cable = net->cable_;
  MU_RETURN_IF_ERROR(Ip({"netns", "add", name}));
  MU_RETURN_IF_ERROR(
      Ip({"link", "add", cable, "type", "veth", "peer", "name", kEth, "netns", name}));
  MU_RETURN_IF_ERROR(Ip({"addr", "add", net->outside_ip_ + "/30", "dev", cable}));
  MU_RETURN_IF_ERROR(Ip({"-n", name, "addr", "add", net->inside_ip_ + "/30", "dev", kEth}));
  MU_RETURN_IF_ERROR(Ip({"-n", name, "link", "set", "lo", "up"}));
  MU_RETURN_IF_ERROR(net->Heal());
  return net;
}

NetworkNamespace::~NetworkNamespace() {
  // The namespace lives as long as a process in it, which has to lose its cable all the same.
  (void)Ip({"link", "del", cable_});
  (void)Ip({"netns", "del", name_});
}

SubprocessOptions NetworkNamespace::Inside(SubprocessOptions options) const {
  std::vector<std::string> args = {"netns", "exec", name_, options.path};
  args.insert(args.end(), options.args.begin(), options.args.end());
  options.path = "ip";
  options.args = std::move(args);
  return options;
}

absl::Status NetworkNamespace::SetLink(End end, const std::string& state) const {
  if (end == kInside) return Ip({"-n", name_, "link", "set", kEth, state});
  return Ip({"link", "set", cable_, state});
}

absl::Status NetworkNamespace::Cut(End end) { return SetLink(end, "down"); }

absl::Status NetworkNamespace::Heal() {
  MU_RETURN_IF_ERROR(SetLink(kOutside, "up"));
  return SetLink(kInside, "up");
}

}  // namespace mu::testing
