#include "common/env/nobody_listens.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "absl/strings/str_cat.h"
#include "common/env/unique_fd.h"
#include "tests/testing/matchers.h"

namespace mu {
namespace {

// A socket that is bound to a port of loopback, and the port.
std::pair<UniqueFd, int> Bound() {
  UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  socklen_t size = sizeof(address);
  EXPECT_EQ(getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
  return {std::move(fd), ntohs(address.sin_port)};
}

TEST(NobodyListens, UntilSomebodyDoes) {
  const auto [fd, port] = Bound();
  const std::string address = absl::StrCat("127.0.0.1:", port);
  EXPECT_TRUE(NobodyListens(address, absl::Seconds(10)));
  ASSERT_EQ(listen(fd.get(), 1), 0);
  EXPECT_FALSE(NobodyListens(address, absl::Seconds(10)));
  EXPECT_FALSE(NobodyListens(absl::StrCat("localhost:", port), absl::Seconds(10)));
}

TEST(NobodyListens, IsNotSaidOfWhatIsNoAddress) {
  EXPECT_FALSE(NobodyListens("memory:7x", absl::Seconds(1)));
  EXPECT_FALSE(NobodyListens("no.such.host.invalid:80", absl::Seconds(1)));
  EXPECT_FALSE(NobodyListens("::1:1", absl::Seconds(1)));  // 1 may be no port
}

// Its queue is full: nothing is heard of it.
TEST(NobodyListens, IsNotSaidOfWhoeverIsSilent) {
  const auto [fd, port] = Bound();
  ASSERT_EQ(listen(fd.get(), 0), 0);
  const std::string address = absl::StrCat("127.0.0.1:", port);
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(NobodyListens(address, absl::Milliseconds(50)));
}

}  // namespace
}  // namespace mu
