// Bytes from strangers that are no requests: too many of them, or noise.
#include <sys/mman.h>
#include <sys/socket.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "tests/conformance/victims.h"
#include "tests/testing/stranger.h"

namespace mu {
namespace {

using testing::Dial;
using testing::HasCode;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::Noise;
using ::testing::Not;
using testing::StatusIs;
using testing::Victims;

TEST(Conformance, OversizeMessage) {
  MU_ASSERT_OK_AND_ASSIGN(const auto victims, Victims::Start());
  // Zeros that take no memory: a byte more than a daemon takes.
  constexpr size_t kBytes = (size_t{1} << 30) + 1;
  void* const zeros =
      mmap(nullptr, kBytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ASSERT_NE(zeros, MAP_FAILED);
  const std::shared_ptr<const void> owner(
      zeros, [](const void* p) { munmap(const_cast<void*>(p), kBytes); });
  const Buffer huge(owner, static_cast<const char*>(zeros), kBytes);
  const auto too_large =
      StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("larger than max"));
  EXPECT_THAT(victims->Send(victims->server(), "/muster.PsServer/Push", huge), too_large);
  EXPECT_THAT(victims->Send(victims->worker(), "/muster.Worker/InstallFunction", huge), too_large);
  EXPECT_THAT(victims->Send(victims->worker(), "/muster.Worker/Feed", huge), too_large);
  EXPECT_THAT(victims->Send(victims->c().address(), "/muster.Coordinator/Register", huge),
              too_large);
  victims->ExpectUnharmed();
}

TEST(Conformance, GarbageBytes) {
  MU_ASSERT_OK_AND_ASSIGN(const auto victims, Victims::Start());
  SplitMix random(17);
  // At the port.
  std::vector<UniqueFd> open;
  const std::string beginnings[] = {
      "", "GET / HTTP/1.1\r\nHost: x\r\n\r\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
      "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"};  // of a TLS client
  for (const std::string& address : victims->addresses()) {
    for (int i = 0; i < 24; ++i) {
      UniqueFd fd = Dial(address);
      const std::string bytes = beginnings[i % 4] + Noise(&random, random.Below(10'000));
      (void)send(fd.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (i % 2 == 0) open.push_back(std::move(fd));  // and says nothing more
    }
  }
  // As the message of every method.
  const std::pair<std::string, const google::protobuf::FileDescriptor*> services[] = {
      {victims->worker(), pb::RunRequest::descriptor()->file()},
      {victims->server(), pb::PushRequest::descriptor()->file()},
      {victims->c().address(), pb::RegisterRequest::descriptor()->file()}};
  for (const auto& [address, file] : services) {
    const google::protobuf::ServiceDescriptor& service = *file->service(0);
    for (int m = 0; m < service.method_count(); ++m) {
      const std::string method =
          absl::StrCat("/", service.full_name(), "/", service.method(m)->name());
      EXPECT_THAT(victims->Send(address, method, Buffer("\xff\xff\xff\xff" + Noise(&random, 100))),
                  StatusIs(absl::StatusCode::kInvalidArgument, Not(IsEmpty())))
          << method;
      // What only reads asks for nothing; who is no member may leave again.
      const bool harmless = absl::StartsWith(service.method(m)->name(), "Get") ||
                            service.method(m)->name() == "Leave";
      for (int i = 0; i < 30; ++i) {
        const absl::Status status =
            victims->Send(address, method, Buffer(Noise(&random, i == 0 ? 0 : random.Below(200))));
        EXPECT_TRUE(harmless || !status.ok()) << method;
      }
    }
    EXPECT_THAT(victims->Send(address, "/muster.Nobody/Nothing", Buffer(std::string())),
                HasCode(absl::StatusCode::kUnimplemented));
  }
  victims->ExpectUnharmed();
}

}  // namespace
}  // namespace mu
