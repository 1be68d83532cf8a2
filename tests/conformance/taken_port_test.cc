// A daemon whose port is taken.
#include "absl/strings/str_cat.h"
#include "common/env/file.h"
#include "tests/conformance/conformance.h"

namespace mu {
namespace {

using ::testing::HasSubstr;

// The port may be free on the next try, or on another machine, so whoever started the daemon starts
// it again.
TEST(Conformance, TakenPort) {
  const auto transport = NewGrpcTransport();
  MU_ASSERT_OK_AND_ASSIGN(const auto other, transport->Listen("127.0.0.1:0", {}));
  const std::string port = other->address().substr(other->address().rfind(':') + 1);
  MU_ASSERT_OK_AND_ASSIGN(const TempDirectory directory, TempDirectory::Create("muster-port"));
  for (const char* daemon : {"worker", "psserver"}) {
    SCOPED_TRACE(daemon);
    SubprocessOptions options;
    options.path = absl::StrCat(testing::BinaryDirectory(), "/", daemon);
    options.args = {"--coordinator=127.0.0.1:1", "--listen=" + other->address()};
    options.output_file = absl::StrCat(directory.path(), "/", daemon);
    MU_ASSERT_OK_AND_ASSIGN(const auto process, Subprocess::Start(options));
    const std::optional<ExitStatus> end = process->WaitFor(absl::Seconds(10));
    ASSERT_TRUE(end.has_value());
    EXPECT_EQ(end->code, 4);
    MU_ASSERT_OK_AND_ASSIGN(const std::string output, ReadFile(options.output_file));
    EXPECT_THAT(output, HasSubstr(absl::StrCat("port ", port, " is in use")));
  }
}

}  // namespace
}  // namespace mu
