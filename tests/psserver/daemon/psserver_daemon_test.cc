// The real daemon, talking gRPC to a coordinator that this test plays.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "common/base/mutex.h"
#include "common/client/ps_admin.h"
#include "common/env/file.h"
#include "common/env/subprocess.h"
#include "common/process/daemon.h"
#include "common/rpc/typed.h"
#include "tests/psserver/model.h"
#include "tests/testing/matchers.h"

namespace mu {
namespace {

using ::testing::HasSubstr;

class PsDaemonTest : public ::testing::Test {
 protected:
  static constexpr uint64_t kJob = 5;

  void SetUp() override {
    transport_ = NewGrpcTransport();
    MethodTable methods;
    methods.AddUnary("/muster.Coordinator/Register", RunOn::kTransportThread,
                     TypedHandler<pb::RegisterRequest>([this](const pb::RegisterRequest& request) {
                       EXPECT_EQ(request.role(), pb::ROLE_PSSERVER);
                       pb::RegisterReply reply;
                       reply.set_job(kJob);
                       reply.set_epoch(1);
                       reply.set_heartbeat_ms(20);
                       reply.set_lease_ms(60000);
                       MutexLock lock(&mutex_);
                       address_ = request.address();
                       changed_.SignalAll();
                       return absl::StatusOr<pb::RegisterReply>(reply);
                     }));
    methods.AddUnary("/muster.Coordinator/Heartbeat", RunOn::kTransportThread,
                     TypedHandler<pb::HeartbeatRequest>([this](const pb::HeartbeatRequest&) {
                       MutexLock lock(&mutex_);
                       ++beats_;
                       changed_.SignalAll();
                       pb::HeartbeatReply reply;
                       reply.set_lease_ms(60000);
                       reply.set_dismissed(dismisses_);
                       return absl::StatusOr<pb::HeartbeatReply>(reply);
                     }));
    methods.AddUnary("/muster.Coordinator/Leave", RunOn::kOwnThread,
                     TypedHandler<pb::LeaveRequest>([this](const pb::LeaveRequest& request) {
                       MutexLock lock(&mutex_);
                       left_ = true;
                       reason_ = request.reason();
                       changed_.SignalAll();
                       while (hold_leaves_) changed_.Wait(&mutex_);
                       return absl::StatusOr<pb::LeaveReply>(pb::LeaveReply());
                     }));
    auto listening = transport_->Listen("127.0.0.1:0", std::move(methods));
    MU_ASSERT_OK(listening);
    coordinator_ = *std::move(listening);
    auto log = MakeTempDirectory("psserver_daemon_test");
    MU_ASSERT_OK(log);
    directory_ = *log;
  }
  void TearDown() override { MU_EXPECT_OK(RemoveTree(directory_)); }

  std::unique_ptr<Subprocess> StartDaemon(std::vector<std::string> more = {},
                                          bool coordinator = true) {
    SubprocessOptions options;
    options.path = MUSTER_PSSERVER;
    options.args = {"--coordinator=" + (coordinator ? coordinator_->address() : "127.0.0.1:1")};
    options.args.insert(options.args.end(), more.begin(), more.end());
    options.output_file = OutputFile();
    options.ready_pipe = true;
    options.parent_pipe = true;
    auto daemon = Subprocess::Start(options);
    EXPECT_THAT(daemon, testing::IsOk());
    return daemon.ok() ? *std::move(daemon) : nullptr;
  }
  std::string OutputFile() const { return JoinPath(directory_, "output"); }
  std::string WaitForAddress() {
    MutexLock lock(&mutex_);
    while (address_.empty()) changed_.Wait(&mutex_);
    return address_;
  }
  // Then it knows that it is registered. Before, SIGTERM makes it leave at once: it has served
  // nobody.
  void WaitForHeartbeat() {
    MutexLock lock(&mutex_);
    for (const int before = beats_; beats_ == before;) changed_.Wait(&mutex_);
  }
  bool left() {
    MutexLock lock(&mutex_);
    return left_;
  }

  std::unique_ptr<Transport> transport_;
  std::unique_ptr<RpcServer> coordinator_;
  std::string directory_;
  Mutex mutex_;
  CondVar changed_;
  std::string address_ ABSL_GUARDED_BY(mutex_);
  int beats_ ABSL_GUARDED_BY(mutex_) = 0;
  bool left_ ABSL_GUARDED_BY(mutex_) = false;
  std::string reason_ ABSL_GUARDED_BY(mutex_);
  bool hold_leaves_ ABSL_GUARDED_BY(mutex_) = false;
  bool dismisses_ ABSL_GUARDED_BY(mutex_) = false;
};

TEST_F(PsDaemonTest, RegistersServesAndLeavesOnSigterm) {
  auto daemon = StartDaemon();
  ASSERT_NE(daemon, nullptr);
  MU_ASSERT_OK_AND_ASSIGN(const std::string ready, daemon->ReadReadyLine(absl::Seconds(20)));
  EXPECT_EQ(WaitForAddress(), ready);
  MU_ASSERT_OK(daemon->Kill(SIGTERM));
  EXPECT_EQ(daemon->Wait().ToString(), (ExitStatus{0, 0}).ToString());
  EXPECT_TRUE(left());
}

// A manager that replaces whatever did not end with 0 must not take a drain for the job's end.
TEST_F(PsDaemonTest, TheEndOfADrainHasTheCodeThatWasAskedFor) {
  for (const bool dismissed : {false, true}) {
    {
      MutexLock lock(&mutex_);
      dismisses_ = false;
    }
    auto daemon = StartDaemon({"--drained_exit_code=143"});
    ASSERT_NE(daemon, nullptr);
    WaitForHeartbeat();
    if (dismissed) {
      MutexLock lock(&mutex_);
      dismisses_ = true;
    } else {
      MU_ASSERT_OK(daemon->Kill(SIGTERM));
    }
    EXPECT_EQ(daemon->Wait().ToString(), (ExitStatus{dismissed ? 0 : 143, 0}).ToString());
    EXPECT_TRUE(left());
  }
}

TEST_F(PsDaemonTest, ServesUntilTheCoordinatorLetsItGo) {
  auto daemon = StartDaemon();
  ASSERT_NE(daemon, nullptr);
  pb::RoutingProto routing = testing::SmallModel(1);
  routing.mutable_servers(0)->set_address(WaitForAddress());
  PsClient client([this](const std::string& address) {
    return transport_->Connect(address, pb::ROLE_PSSERVER);
  });
  MU_ASSERT_OK(client.SetRouting(routing));
  PsAdmin admin(&client);
  pb::RequestContext context;
  context.set_job(kJob);
  context.set_epoch(1);
  MU_ASSERT_OK(admin.Configure(context));
  WaitForHeartbeat();
  {
    MutexLock lock(&mutex_);
    hold_leaves_ = true;
  }
  MU_ASSERT_OK(daemon->Kill(SIGTERM));
  {
    MutexLock lock(&mutex_);
    while (!left_) changed_.Wait(&mutex_);
    EXPECT_EQ(reason_, "SIGTERM");
  }
  // As the coordinator does: a checkpoint, and then the answer.
  PsSession session(&client, {.context = context, .function = 1});
  const int64_t one = 1;
  const VariableWrite write{2, VariableWrite::kAssignAdd, &one};
  MU_EXPECT_OK(session.Push({&write, 1}, {}));
  MU_EXPECT_OK(admin.Save(context, directory_));
  {
    MutexLock lock(&mutex_);
    hold_leaves_ = false;
    changed_.SignalAll();
  }
  EXPECT_EQ(daemon->Wait().ToString(), (ExitStatus{0, 0}).ToString());
}

TEST_F(PsDaemonTest, SigtermTwiceOrAnImpatientDrainEndAtOnce) {
  {
    MutexLock lock(&mutex_);
    hold_leaves_ = true;
  }
  auto daemon = StartDaemon();
  WaitForHeartbeat();
  MU_ASSERT_OK(daemon->Kill(SIGTERM));
  {
    MutexLock lock(&mutex_);
    while (!left_) changed_.Wait(&mutex_);
  }
  MU_ASSERT_OK(daemon->Kill(SIGTERM));
  EXPECT_EQ(daemon->Wait().code, 128 + SIGTERM);
  daemon = StartDaemon({"--drain_timeout=0.2"});
  WaitForHeartbeat();
  MU_ASSERT_OK(daemon->Kill(SIGTERM));
  EXPECT_EQ(daemon->Wait().code, 0) << "the coordinator did not answer in time";
  MutexLock lock(&mutex_);
  hold_leaves_ = false;
  changed_.SignalAll();
}

TEST_F(PsDaemonTest, ExitCodesTellWhatWasWrong) {
  EXPECT_EQ(StartDaemon({"--no_such_flag"})->Wait().code, kExitBadInput);
  EXPECT_EQ(StartDaemon({"--listen=0.0.0.0:0"})->Wait().code, kExitBadInput);
  EXPECT_EQ(StartDaemon({"--listen=" + coordinator_->address()})->Wait().code, kExitInfrastructure);
  EXPECT_EQ(StartDaemon({"--orphan_timeout=0.2"}, /*coordinator=*/false)->Wait().code,
            kExitInfrastructure);
  MU_ASSERT_OK_AND_ASSIGN(const std::string output, ReadFile(OutputFile()));
  EXPECT_THAT(output, HasSubstr("--no_such_flag"));
  EXPECT_THAT(output, HasSubstr("--insecure"));
  EXPECT_THAT(output, HasSubstr("in use"));
  EXPECT_THAT(output, HasSubstr("the coordinator could not be reached"));
}

// Whoever collects lines of JSON can read all of them.
TEST_F(PsDaemonTest, TheLastWordIsJsonWhereTheLogIs) {
  for (const std::string& flag :
       {std::string("--listen=0.0.0.0:0"), "--listen=" + coordinator_->address()})
    EXPECT_NE(StartDaemon({"--log_format=json", flag})->Wait().code, kExitOk);
  MU_ASSERT_OK_AND_ASSIGN(const std::string output, ReadFile(OutputFile()));
  int errors = 0;
  for (const absl::string_view line : absl::StrSplit(output, '\n', absl::SkipEmpty())) {
    const auto json = nlohmann::json::parse(std::string(line), nullptr, /*allow_exceptions=*/false);
    ASSERT_TRUE(json.is_object()) << line;
    errors += json["level"] == "error";
  }
  EXPECT_EQ(errors, 2) << output;
}

TEST_F(PsDaemonTest, EndsWhenTheCoordinatorStaysAway) {
  auto daemon = StartDaemon({"--orphan_timeout=0.3"});
  WaitForAddress();
  coordinator_.reset();
  EXPECT_EQ(daemon->Wait().code, kExitInfrastructure);
}

TEST_F(PsDaemonTest, MemoryIsAtMost1_2TimesValuesAndSlots) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "AddressSanitizer keeps memory of its own";
#endif
  auto daemon = StartDaemon();
  pb::RoutingProto routing;
  routing.set_version(1);
  routing.add_servers()->set_address(WaitForAddress());
  constexpr uint32_t kTables = 20;
  constexpr uint64_t kRows = 153000;  // 20 tables of 153,000 rows of 128 bytes: 392 MB
  for (uint32_t t = 0; t < kTables; ++t) {
    pb::TableProto* table = routing.add_tables();
    table->set_id(t);
    table->set_name("table" + std::to_string(t));
    table->set_rows(kRows);
    table->set_dim(16);
    table->mutable_initializer()->mutable_normal()->set_stddev(1);
    table->mutable_optimizer()->mutable_adagrad()->set_learning_rate(0.1f);
  }
  MU_ASSERT_OK(PlaceAll(&routing));
  PsClient client([this](const std::string& address) {
    return transport_->Connect(address, pb::ROLE_PSSERVER);
  });
  MU_ASSERT_OK(client.SetRouting(routing));
  PsAdmin admin(&client);
  pb::RequestContext context;
  context.set_job(kJob);
  context.set_epoch(1);
  MU_ASSERT_OK(admin.Configure(context));
  MU_ASSERT_OK_AND_ASSIGN(const auto empty, admin.Stats(context));
  PsSession session(&client, {.context = context, .function = 1});
  constexpr uint64_t kAtOnce = 17000;
  std::vector<int64_t> ids(kAtOnce);
  std::vector<float> values(kAtOnce * 16);
  uint32_t step = 0;
  for (uint32_t t = 0; t < kTables; ++t) {
    for (uint64_t begin = 0; begin < kRows; begin += kAtOnce) {
      std::iota(ids.begin(), ids.end(), static_cast<int64_t>(begin));
      const RowsRead read{t, ids, values.data()};
      session.BeginStep(step++);
      MU_ASSERT_OK(session.Pull({}, {&read, 1}));
      const RowsWrite write{t, ids, values.data()};
      MU_ASSERT_OK(session.Push({}, {&write, 1}));
    }
  }
  MU_ASSERT_OK_AND_ASSIGN(const auto stats, admin.Stats(context));
  EXPECT_EQ(stats[0].rows(), kTables * kRows);
  EXPECT_EQ(stats[0].value_bytes(), kTables * kRows * 128);
  ASSERT_GE(stats[0].value_bytes(), 300u << 20);
  EXPECT_LE(static_cast<double>(stats[0].resident_bytes()),
            1.2 * static_cast<double>(stats[0].value_bytes()));
  ::testing::Test::RecordProperty(
      "resident_per_value_percent",
      static_cast<int>(100 * stats[0].resident_bytes() / stats[0].value_bytes()));
  std::printf("resident %.1f MB for %.1f MB of values and slots; %.1f MB when empty\n",
              stats[0].resident_bytes() / 1e6, stats[0].value_bytes() / 1e6,
              empty[0].resident_bytes() / 1e6);
}

}  // namespace
}  // namespace mu
