// A cluster whose calls are encrypted and authenticated by mutual TLS.
#include "absl/strings/str_cat.h"
#include "common/rpc/typed.h"
#include "tests/conformance/conformance.h"
#include "tests/testing/certificates.h"

namespace mu {
namespace {

using testing::BinaryDirectory;
using testing::Certificates;
using testing::HasCode;
using ::testing::HasSubstr;
using testing::StartCounting;
using testing::StatusIs;
using testing::TestClusterOptions;
using testing::WaitWhile;

std::vector<std::string> FlagsOf(const TlsFiles& files) {
  return {"--tls_cert=" + files.cert, "--tls_key=" + files.key, "--tls_ca=" + files.ca};
}

pb::Role RoleOf(const std::string& program) {
  return program == "worker" ? pb::ROLE_WORKER : pb::ROLE_PSSERVER;
}

class CertificatesTest : public ::testing::Test {
 protected:
  TestClusterOptions Secure(int workers) const {
    TestClusterOptions options;
    options.workers = workers;
    options.ps = 2;
    options.heartbeat = absl::Milliseconds(100);
    options.coordinator_transport = [this] {
      return NewGrpcTransport({.tls = certificates_.Of(pb::ROLE_COORDINATOR)});
    };
    options.adjust = [this](const std::string& role, int, SubprocessOptions* daemon) {
      for (std::string& flag : FlagsOf(certificates_.Of(RoleOf(role))))
        daemon->args.push_back(std::move(flag));
    };
    return options;
  }
  // How a daemon ends that cannot join, with what it said.
  struct End {
    int code = -1;
    std::string output;
  };
  static absl::StatusOr<End> EndOf(const std::string& program, std::vector<std::string> args) {
    MU_ASSIGN_OR_RETURN(const TempDirectory directory, TempDirectory::Create("muster-tls"));
    SubprocessOptions options;
    options.path = absl::StrCat(BinaryDirectory(), "/", program);
    options.args = std::move(args);
    options.args.push_back("--orphan_timeout=1");
    options.output_file = directory.path() + "/log";
    options.parent_pipe = true;
    MU_ASSIGN_OR_RETURN(const auto process, Subprocess::Start(options));
    const std::optional<ExitStatus> status = process->WaitFor(absl::Seconds(20));
    if (!status.has_value()) return absl::DeadlineExceededError("it does not end");
    MU_ASSIGN_OR_RETURN(std::string output, ReadFile(options.output_file));
    return End{status->code, std::move(output)};
  }
  // Nobody has come, and the job goes on.
  static void ExpectUndisturbed(testing::CountingCluster& t) {
    const int64_t before = t.Count();
    t.c().Schedule(t.count, {.steps = 5});
    MU_EXPECT_OK(t.c().Join());
    EXPECT_EQ(t.Count(), before + 5);
    const RuntimeStats stats = t.c().Stats();
    EXPECT_EQ(stats.workers_ready, 1u);
    EXPECT_TRUE(stats.failures.empty());
  }

  const Certificates certificates_;
};

TEST_F(CertificatesTest, AClusterTrainsAndRecovers) {
  MU_ASSERT_OK_AND_ASSIGN(auto t, StartCounting(Secure(2)));
  t.c().EnableRecovery(t.cluster->directory() + "/checkpoints");
  for (int i = 0; i < 40; ++i) t.c().Schedule(t.count, {.steps = 50});
  WaitWhile([&] { return t.c().Stats().steps < 100; });
  t.cluster->KillWorker(0);
  MU_ASSERT_OK(t.cluster->StartWorker(0));
  t.cluster->KillServer(1);
  MU_ASSERT_OK(t.cluster->StartServer(1));
  MU_ASSERT_OK(t.c().Join());
  EXPECT_EQ(t.Count(), 2000);
}

TEST_F(CertificatesTest, WrongCertificate) {
  MU_ASSERT_OK_AND_ASSIGN(auto t, StartCounting(Secure(1)));
  const std::string coordinator = "--coordinator=" + t.c().address();
  {
    std::vector<std::string> args = FlagsOf(certificates_.Of(pb::ROLE_PSSERVER));
    args.push_back(coordinator);
    MU_ASSERT_OK_AND_ASSIGN(const End end, EndOf("worker", args));
    EXPECT_EQ(end.code, 2) << end.output;
    EXPECT_THAT(end.output, HasSubstr("worker.muster"));
  }
  const Certificates others;
  for (const char* program : {"worker", "psserver"}) {
    SCOPED_TRACE(program);
    std::vector<std::string> args = FlagsOf(others.Of(RoleOf(program)));
    args.push_back(coordinator);
    MU_ASSERT_OK_AND_ASSIGN(const End end, EndOf(program, args));
    EXPECT_EQ(end.code, 4) << end.output;
    EXPECT_THAT(end.output, HasSubstr("(TLS, as coordinator.muster)"));
    EXPECT_THAT(end.output, HasSubstr("certificate verify failed"));
    EXPECT_THAT(end.output, HasSubstr("does not answer; this daemon tries again for 1s"));
  }
  ExpectUndisturbed(t);
}

TEST_F(CertificatesTest, ExpiredCertificate) {
  const TlsFiles files = certificates_.Of(pb::ROLE_WORKER);
  certificates_.Make(/*days=*/-1);
  std::vector<std::string> args = FlagsOf(files);
  args.push_back("--coordinator=127.0.0.1:1");
  MU_ASSERT_OK_AND_ASSIGN(const End end, EndOf("worker", args));
  EXPECT_EQ(end.code, 2) << end.output;
  EXPECT_THAT(end.output, HasSubstr("has expired"));
}

TEST_F(CertificatesTest, NoCertificate) {
  MU_ASSERT_OK_AND_ASSIGN(auto t, StartCounting(Secure(1)));
  for (const char* program : {"worker", "psserver"}) {
    SCOPED_TRACE(program);
    MU_ASSERT_OK_AND_ASSIGN(const End end, EndOf(program, {"--coordinator=" + t.c().address()}));
    EXPECT_EQ(end.code, 4) << end.output;
    EXPECT_THAT(end.output, HasSubstr("does not answer; this daemon tries again for 1s"));
    EXPECT_THAT(end.output, HasSubstr("(in the clear; does it want --tls_cert?)"));
  }
  ExpectUndisturbed(t);
}

// Whoever has a worker's certificate is no server, whatever it says.
TEST_F(CertificatesTest, AWorkersCertificateOpensNothingElse) {
  MU_ASSERT_OK_AND_ASSIGN(auto t, StartCounting(Secure(1)));
  const auto transport = NewGrpcTransport({.tls = certificates_.Of(pb::ROLE_WORKER)});
  const auto coordinator = transport->Connect(t.c().address(), pb::ROLE_COORDINATOR);
  pb::RegisterRequest as_server;
  as_server.set_role(pb::ROLE_PSSERVER);
  as_server.set_address("127.0.0.1:1");
  as_server.set_incarnation(7);
  EXPECT_THAT(Call<pb::RegisterReply>(*coordinator, "/muster.Coordinator/Register", as_server),
              StatusIs(absl::StatusCode::kPermissionDenied, HasSubstr("psserver.muster")));
  const auto servers = t.c().runtime().Servers();
  pb::LeaveRequest leave;
  leave.set_role(pb::ROLE_PSSERVER);
  leave.set_index(0);
  leave.set_incarnation(servers[0].incarnation.value());
  EXPECT_THAT(Call<pb::LeaveReply>(*coordinator, "/muster.Coordinator/Leave", leave),
              HasCode(absl::StatusCode::kPermissionDenied));
  leave.set_role(pb::ROLE_UNSPECIFIED);
  EXPECT_THAT(Call<pb::LeaveReply>(*coordinator, "/muster.Coordinator/Leave", leave),
              HasCode(absl::StatusCode::kInvalidArgument));
  const auto server = transport->Connect(servers[0].address, pb::ROLE_PSSERVER);
  pb::FenceRequest fence;
  *fence.mutable_context() = t.c().runtime().Context();
  fence.mutable_context()->set_low_water(uint64_t{1} << 60);
  EXPECT_THAT(Call<pb::FenceReply>(*server, "/muster.PsServer/Fence", fence),
              HasCode(absl::StatusCode::kPermissionDenied));
  ExpectUndisturbed(t);
}

}  // namespace
}  // namespace mu
