#include "common/env/host_port.h"

#include <gmock/gmock.h>

#include "tests/testing/matchers.h"

namespace mu {
namespace {

using ::testing::HasSubstr;

TEST(HostPort, IsSplitAndJoined) {
  const std::tuple<const char*, const char*, int> addresses[] = {
      {"127.0.0.1:7000", "127.0.0.1", 7000},
      {"worker-3.workers:0", "worker-3.workers", 0},
      {"[::1]:65535", "::1", 65535},
      {"[fd00:10:244::5]:7000", "fd00:10:244::5", 7000},
  };
  for (const auto& [address, host, port] : addresses) {
    MU_ASSERT_OK_AND_ASSIGN(const HostPort at, SplitHostPort(address));
    EXPECT_EQ(at.host, host);
    EXPECT_EQ(at.port, port);
    EXPECT_EQ(JoinHostPort(at.host, at.port), address);
  }
}

TEST(HostPort, SaysWhatIsNone) {
  for (const char* const wrong :
       {"", "host", ":80", "host:", "host:x", "host:65536", "host:-1", "[::1]"}) {
    EXPECT_THAT(SplitHostPort(wrong).status(),
                testing::StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("HOST:PORT")))
        << wrong;
  }
}

// Its last group is no port.
TEST(HostPort, AnAddressWithColonsNeedsBrackets) {
  for (const char* const wrong :
       {"::1", "fd00::5", "fd00:10:244::5", "fd00::1:7000", "[::1]x:80", "x[::1]:80"}) {
    EXPECT_THAT(SplitHostPort(wrong).status(),
                testing::StatusIs(absl::StatusCode::kInvalidArgument,
                                  ::testing::AllOf(HasSubstr("HOST:PORT"), HasSubstr("brackets"))))
        << wrong;
  }
  EXPECT_EQ(JoinHostPort("fd00:10:244::5", 7000), "[fd00:10:244::5]:7000");
}

}  // namespace
}  // namespace mu
