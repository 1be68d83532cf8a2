// A network namespace with a cable to the machine's own one, for tests that cut a daemon off:
// packets are dropped in silence, connections stay half open, nobody is told. Needs root and
// iproute2.
//
//   if (const absl::Status no = NetworkNamespace::Usable(); !no.ok()) GTEST_SKIP() << no.message();
//   MU_ASSERT_OK_AND_ASSIGN(auto net, NetworkNamespace::Create());
//   MU_ASSERT_OK(Subprocess::Start(net->Inside(options)));   // a daemon that listens on
//   net->inside_ip() MU_ASSERT_OK(net->Cut(NetworkNamespace::kInside)); MU_ASSERT_OK(net->Heal());
//
// Names and addresses (198.18.0.0/15, which is for tests) come from the process id, so tests do not
// meet. Not thread safe.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/env/subprocess.h"

namespace mu::testing {

class NetworkNamespace {
 public:
  // FAILED_PRECONDITION says what is missing.
  static absl::Status Usable();
  static absl::StatusOr<std::unique_ptr<NetworkNamespace>> Create();
  ~NetworkNamespace();  // removes it; processes inside live on, without a cable

  const std::string& inside_ip() const { return inside_ip_; }
  const std::string& outside_ip() const {
    return outside_ip_;
  }  // this machine, as it is seen from inside

  // The same program, to be run inside. Its pid is that of the program.
  SubprocessOptions Inside(SubprocessOptions options) const;

  // Pulls the cable's plug at one end. The address of that end is gone meanwhile, for its own side
  // as well.
  enum End { kInside, kOutside };
  absl::Status Cut(End end);
  absl::Status Heal();

 private:
  explicit NetworkNamespace(int number);
  absl::Status SetLink(End end, const std::string& state) const;

  std::string name_, cable_, inside_ip_, outside_ip_;
};

}  // namespace mu::testing
