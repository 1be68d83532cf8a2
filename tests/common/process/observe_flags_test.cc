#include "common/process/observe_flags.h"

#include <gmock/gmock.h>

#include "common/process/daemon.h"
#include "tests/testing/certificates.h"
#include "tests/testing/matchers.h"

namespace mu {
namespace {

using ::mu::testing::StatusIs;
using ::testing::HasSubstr;

TEST(HttpAddress, APortIsOneOfLoopback) {
  EXPECT_EQ(HttpAddress("9090", {}, false).value_or("refused"), "127.0.0.1:9090");
  EXPECT_EQ(HttpAddress("0", {}, false).value_or("refused"), "127.0.0.1:0");
  EXPECT_EQ(HttpAddress("localhost:80", {}, false).value_or("refused"), "localhost:80");
  EXPECT_EQ(HttpAddress("[::1]:80", {}, false).value_or("refused"), "[::1]:80");
}

TEST(HttpAddress, OffLoopbackItNeedsTlsOrInsecure) {
  EXPECT_THAT(HttpAddress("0.0.0.0:9090", {}, false),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       ::testing::AllOf(HasSubstr("--http=0.0.0.0:9090"), HasSubstr("--tls_cert"),
                                        HasSubstr("--insecure"))));
  const testing::Certificates certificates;
  TlsFiles tls = certificates.Of(pb::ROLE_WORKER);
  EXPECT_EQ(HttpAddress("0.0.0.0:9090", tls, false).value_or("refused"), "0.0.0.0:9090");
  EXPECT_EQ(HttpAddress("[::]:9090", {}, true).value_or("refused"), "[::]:9090");
  tls.key.clear();
  EXPECT_THAT(HttpAddress("0.0.0.0:9090", tls, false),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("--tls_key")));
}

TEST(HttpAddress, IsOffLoopbackIfOthersReachIt) {
  for (const char* const here : {"", "9090", "127.0.0.1:9090", "[::1]:9090"})
    EXPECT_FALSE(IsOffLoopback(here)) << here;
  for (const char* const there : {"0.0.0.0:9090", "[::]:9090", "node-1:9090"})
    EXPECT_TRUE(IsOffLoopback(there)) << there;
}

TEST(HttpAddress, RefusesWhatIsNoAddress) {
  for (const char* const wrong :
       {"", "x", "65536", "-1", ":80", "host:", "host:x", "::1", "caf\xE9:80"}) {
    EXPECT_THAT(HttpAddress(wrong, {}, true),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("--http=")))
        << wrong;
  }
}

TEST(AdvertisedHttp, IsWhereOthersReachIt) {
  DaemonFlags flags;
  EXPECT_EQ(AdvertisedHttp(flags, "127.0.0.1:81", false), "http://127.0.0.1:81");
  flags.listen = "0.0.0.0:7000";
  EXPECT_EQ(AdvertisedHttp(flags, "127.0.0.1:81", false), "");  // others' loopback is another
  EXPECT_EQ(AdvertisedHttp(flags, "10.0.0.1:81", true), "https://10.0.0.1:81");
  EXPECT_THAT(AdvertisedHttp(flags, "0.0.0.0:81", true), ::testing::EndsWith(":81"));
  EXPECT_THAT(AdvertisedHttp(flags, "0.0.0.0:81", true), ::testing::Not(HasSubstr("0.0.0.0")));
  // What others reach of the daemon, at HTTP's own port.
  flags.advertise = "worker-3.workers:7001";
  EXPECT_EQ(AdvertisedHttp(flags, "0.0.0.0:81", true), "https://worker-3.workers:81");
  flags.advertise = "[fe80::1]";
  EXPECT_EQ(AdvertisedHttp(flags, "[::]:81", true), "https://[fe80::1]:81");
}

}  // namespace
}  // namespace mu
