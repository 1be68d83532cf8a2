// Mutual TLS between the transport's two ends.
#if MUSTER_WITH_GRPC
#include <gmock/gmock.h>

#include <fstream>
#include <utility>

#include "absl/strings/match.h"
#include "absl/time/clock.h"
#include "common/env/file.h"
#include "common/obs/log.h"
#include "common/obs/tls_refusals.h"
#include "tests/common/rpc/transport_fixture.h"
#include "tests/testing/certificates.h"
#include "tests/testing/wait.h"

namespace mu {
namespace {

using ::mu::testing::Certificates;
using ::mu::testing::HasCode;
using ::mu::testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr char kPull[] = "/muster.PsServer/Pull";
constexpr char kSave[] = "/muster.PsServer/Save";
constexpr char kHeartbeat[] = "/muster.Coordinator/Heartbeat";
constexpr absl::Duration kShort = absl::Seconds(2);

// A server of the role psserver that tells who may be calling.
class TlsTest : public ::testing::Test {
 protected:
  TlsTest() {
    MethodTable methods;
    for (const char* method : {kPull, kSave, kHeartbeat}) {
      methods.AddUnary(method, RunOn::kTransportThread,
                       [](std::shared_ptr<ServerCall> call, Buffer) {
                         std::string roles;
                         if (call->CallerMayBe(pb::ROLE_COORDINATOR)) roles += 'c';
                         if (call->CallerMayBe(pb::ROLE_WORKER)) roles += 'w';
                         if (call->CallerMayBe(pb::ROLE_PSSERVER)) roles += 'p';
                         if (call->CallerMayBe(pb::ROLE_UNSPECIFIED)) roles += '0';
                         if (call->CallerMayBe(static_cast<pb::Role>(7))) roles += '7';
                         call->Finish(absl::OkStatus(), Text(roles));
                       });
    }
    transport_ = NewGrpcTransport({.tls = certificates_.Of(pb::ROLE_PSSERVER)});
    server_ = *transport_->Listen("127.0.0.1:0", std::move(methods));
  }
  absl::StatusOr<std::string> CallAs(const TlsFiles& files, const char* method,
                                     pb::Role callee = pb::ROLE_PSSERVER) {
    const auto transport = NewGrpcTransport({.tls = files});
    return CallText(*transport->Connect(server_->address(), callee), method, "", kShort);
  }

  const Certificates certificates_;
  std::unique_ptr<Transport> transport_;
  std::unique_ptr<RpcServer> server_;
};

TEST_F(TlsTest, RolesCallWhatIsTheirs) {
  MU_ASSERT_OK_AND_ASSIGN(const std::string worker,
                          CallAs(certificates_.Of(pb::ROLE_WORKER), kPull));
  EXPECT_EQ(worker, "w");
  MU_ASSERT_OK_AND_ASSIGN(const std::string coordinator,
                          CallAs(certificates_.Of(pb::ROLE_COORDINATOR), kSave));
  EXPECT_EQ(coordinator, "c");
  MU_ASSERT_OK_AND_ASSIGN(const std::string server,
                          CallAs(certificates_.Of(pb::ROLE_PSSERVER), kHeartbeat));
  EXPECT_EQ(server, "p");
}

TEST_F(TlsTest, RolesDoNotCallWhatIsOthers) {
  EXPECT_THAT(CallAs(certificates_.Of(pb::ROLE_WORKER), kSave),
              StatusIs(absl::StatusCode::kPermissionDenied,
                       AllOf(HasSubstr("worker.muster"), HasSubstr("coordinator.muster"))));
  const Counter& refused =
      *Telemetry::Process().counter("rpc.server.refused", "", {{"reason", "role"}});
  const int64_t before = refused.value();
  EXPECT_THAT(CallAs(certificates_.Of(pb::ROLE_PSSERVER), kPull),
              HasCode(absl::StatusCode::kPermissionDenied));
  EXPECT_EQ(refused.value(), before + 1);
}

// One line a second at most, so the line of this call may have to wait for the one of another test.
TEST_F(TlsTest, ARefusedRoleIsInTheLog) {
  const auto told = [] {
    for (const std::string& line : LastLogLines()) {
      if (absl::StrContains(line, "TLS: a call of ipv4:127.0.0.1:") &&
          absl::StrContains(line, "PERMISSION_DENIED: " + std::string(kSave)) &&
          absl::StrContains(line, "the caller's is of psserver.muster"))
        return true;
    }
    return false;
  };
  EXPECT_TRUE(testing::Eventually([&] {
    EXPECT_THAT(CallAs(certificates_.Of(pb::ROLE_PSSERVER), kSave),
                HasCode(absl::StatusCode::kPermissionDenied));
    return told();
  }));
}

TEST_F(TlsTest, AServerOfAnotherRoleIsNotBelieved) {
  EXPECT_THAT(CallAs(certificates_.Of(pb::ROLE_WORKER), kPull, pb::ROLE_COORDINATOR),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("coordinator.muster")));
}

TEST_F(TlsTest, AnotherAuthoritysCertificateIsRefused) {
  const Certificates others;
  TlsFiles files = others.Of(pb::ROLE_WORKER);
  EXPECT_THAT(CallAs(files, kPull), StatusIs(absl::StatusCode::kUnavailable, HasSubstr("TLS")))
      << "the caller does not believe the server";
  files.ca = certificates_.Of(pb::ROLE_WORKER).ca;
  EXPECT_THAT(CallAs(files, kPull),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("--tls_cert=")))
      << "the server does not believe the caller";
}

TEST_F(TlsTest, AnExpiredCertificateIsRefusedAndTheCallerSaysWhy) {
  const TlsFiles files = certificates_.Of(pb::ROLE_WORKER);
  certificates_.Make(/*days=*/-1);
  EXPECT_THAT(CallAs(files, kPull),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("has expired")));
}

TEST_F(TlsTest, WhoHasNoCertificateIsRefusedAndCounted) {
  const Counter& refused = *RefusedByTls("rpc");
  const int64_t before = refused.value();
  EXPECT_THAT(CallAs({}, kPull),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("does it want --tls_cert?")));
  // The server's end hears of it a little later, perhaps.
  EXPECT_TRUE(testing::Eventually([&] { return refused.value() > before; }));
}

// A connection that is made later shows the newer certificate.
TEST_F(TlsTest, FilesThatChangeAreReadAgain) {
  const TlsFiles files = certificates_.Of(pb::ROLE_WORKER);
  const auto transport = NewGrpcTransport({.tls = files});
  MU_ASSERT_OK(CallText(*transport->Connect(server_->address(), pb::ROLE_PSSERVER), kPull, ""));
  // The worker becomes a coordinator, so to speak.
  const TlsFiles other = certificates_.Of(pb::ROLE_COORDINATOR);
  for (const auto& [from, to] : {std::pair(other.key, files.key), {other.cert, files.cert}}) {
    MU_ASSERT_OK_AND_ASSIGN(const std::string contents, ReadFile(from));
    std::ofstream(to) << contents;
  }
  absl::Status saved;
  for (const absl::Time until = absl::Now() + absl::Seconds(20); absl::Now() < until;) {
    saved =
        CallText(*transport->Connect(server_->address(), pb::ROLE_PSSERVER), kSave, "").status();
    if (saved.ok()) break;
  }
  MU_EXPECT_OK(saved);
}

}  // namespace
}  // namespace mu
#endif
