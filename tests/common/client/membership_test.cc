#include "common/client/membership.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/error_kind.h"
#include "common/obs/log.h"
#include "common/rpc/typed.h"
#include "tests/testing/matchers.h"
#include "tests/testing/wait.h"

namespace mu {
namespace {

using ::mu::testing::HasCode;
using ::mu::testing::StatusIs;
using ::testing::HasSubstr;

absl::Status RegisterAgain() {
  return WithKind(absl::NotFoundError("who are you?"), pb::ERROR_STALE, pb::ROLE_COORDINATOR);
}

// A coordinator that answers as it is told.
class FakeCoordinator {
 public:
  explicit FakeCoordinator(Transport* transport) : transport_(transport) { Start("memory:0"); }
  ~FakeCoordinator() { Stop(); }

  void Start(const std::string& address) {
    MethodTable methods;
    methods.AddUnary("/muster.Coordinator/Register", RunOn::kTransportThread,
                     TypedHandler<pb::RegisterRequest>(
                         [this](const pb::RegisterRequest& request) { return Register(request); }));
    methods.AddUnary("/muster.Coordinator/Heartbeat", RunOn::kTransportThread,
                     TypedHandler<pb::HeartbeatRequest>(
                         [this](const pb::HeartbeatRequest& request) { return Beat(request); }));
    methods.AddUnary("/muster.Coordinator/Leave", RunOn::kOwnThread,
                     TypedHandler<pb::LeaveRequest>(
                         [this](const pb::LeaveRequest& request) { return Leave(request); }));
    auto server = transport_->Listen(address, std::move(methods));
    ASSERT_THAT(server, testing::IsOk());
    server_ = *std::move(server);
    address_ = server_->address();
  }
  void Stop() { server_.reset(); }
  const std::string& address() const { return address_; }

  void FailRegister(absl::Status status) {
    MutexLock lock(&mutex_);
    register_status_ = std::move(status);
  }
  void FailBeats(absl::Status status) {
    MutexLock lock(&mutex_);
    beat_status_ = std::move(status);
  }
  void SetReply(uint64_t job, uint32_t index) {
    MutexLock lock(&mutex_);
    job_ = job;
    index_ = index;
  }
  void SetEpoch(uint64_t epoch) {
    MutexLock lock(&mutex_);
    epoch_ = epoch;
  }
  // Each registration and heartbeat takes a second of it.
  void UseClock(ManualClock* clock) {
    MutexLock lock(&mutex_);
    clock_ = clock;
  }
  // Who leaves gets no answer until Release.
  void HoldLeaves() {
    MutexLock lock(&mutex_);
    hold_ = true;
  }
  void ReleaseLeaves() {
    MutexLock lock(&mutex_);
    hold_ = false;
    changed_.SignalAll();
  }
  void WaitForLeave() {
    MutexLock lock(&mutex_);
    while (left_.empty()) changed_.Wait(&mutex_);
  }
  int registrations() {
    MutexLock lock(&mutex_);
    return static_cast<int>(registered_.size());
  }
  std::vector<pb::RegisterRequest> registered() {
    MutexLock lock(&mutex_);
    return registered_;
  }
  pb::HeartbeatRequest last_beat() {
    MutexLock lock(&mutex_);
    return last_beat_;
  }
  std::vector<pb::LeaveRequest> left() {
    MutexLock lock(&mutex_);
    return left_;
  }

 private:
  absl::StatusOr<pb::RegisterReply> Register(const pb::RegisterRequest& request) {
    MutexLock lock(&mutex_);
    registered_.push_back(request);
    if (clock_ != nullptr) clock_->Advance(absl::Seconds(1));
    if (!register_status_.ok()) return register_status_;
    pb::RegisterReply reply;
    reply.set_job(job_);
    reply.set_epoch(epoch_);
    reply.set_index(index_);
    reply.set_heartbeat_ms(1);
    reply.set_lease_ms(500);
    return reply;
  }
  absl::StatusOr<pb::HeartbeatReply> Beat(const pb::HeartbeatRequest& request) {
    MutexLock lock(&mutex_);
    last_beat_ = request;
    if (clock_ != nullptr) clock_->Advance(absl::Seconds(1));
    if (!beat_status_.ok()) return beat_status_;
    pb::HeartbeatReply reply;
    reply.set_low_water(12);
    reply.set_lease_ms(700);
    return reply;
  }
  absl::StatusOr<pb::LeaveReply> Leave(const pb::LeaveRequest& request) {
    MutexLock lock(&mutex_);
    left_.push_back(request);
    changed_.SignalAll();
    while (hold_) changed_.Wait(&mutex_);
    return pb::LeaveReply();
  }

  Transport* const transport_;
  std::unique_ptr<RpcServer> server_;
  std::string address_;
  Mutex mutex_;
  absl::Status register_status_ ABSL_GUARDED_BY(mutex_);
  absl::Status beat_status_ ABSL_GUARDED_BY(mutex_);
  CondVar changed_;
  bool hold_ ABSL_GUARDED_BY(mutex_) = false;
  uint64_t job_ ABSL_GUARDED_BY(mutex_) = 9;
  uint64_t epoch_ ABSL_GUARDED_BY(mutex_) = 3;
  uint32_t index_ ABSL_GUARDED_BY(mutex_) = 2;
  ManualClock* clock_ ABSL_GUARDED_BY(mutex_) = nullptr;
  std::vector<pb::RegisterRequest> registered_ ABSL_GUARDED_BY(mutex_);
  pb::HeartbeatRequest last_beat_ ABSL_GUARDED_BY(mutex_);
  std::vector<pb::LeaveRequest> left_ ABSL_GUARDED_BY(mutex_);
};

// Counts what happens and lets the test wait for it.
class Events {
 public:
  void Add(int* counter) {
    MutexLock lock(&mutex_);
    ++*counter;
    changed_.SignalAll();
  }
  void Lost(absl::Status status) {
    MutexLock lock(&mutex_);
    lost_status_ = std::move(status);
    ++lost;
    changed_.SignalAll();
  }
  void WaitFor(const int* counter, int value) {
    MutexLock lock(&mutex_);
    while (*counter < value) changed_.Wait(&mutex_);
  }
  int Get(const int* counter) {
    MutexLock lock(&mutex_);
    return *counter;
  }
  absl::Status lost_status() {
    MutexLock lock(&mutex_);
    return lost_status_;
  }
  int registered = 0, beats = 0, lost = 0;  // read with Get

 private:
  Mutex mutex_;
  CondVar changed_;
  absl::Status lost_status_ ABSL_GUARDED_BY(mutex_);
};

class MembershipTest : public ::testing::Test {
 protected:
  MembershipTest() : transport_(NewMemoryTransport()), coordinator_(transport_.get()) {}

  MembershipOptions Options() {
    MembershipOptions options;
    options.role = pb::ROLE_WORKER;
    options.address = "here:1";
    options.index = -1;
    options.on_registered = [this](const pb::RegisterReply& reply, int64_t) {
      EXPECT_EQ(reply.lease_ms(), 500u);
      events_.Add(&events_.registered);
    };
    options.on_heartbeat = [this](const pb::HeartbeatReply& reply, int64_t) {
      EXPECT_EQ(reply.low_water(), 12u);
      events_.Add(&events_.beats);
    };
    options.on_lost = [this](absl::Status status) { events_.Lost(std::move(status)); };
    return options;
  }
  std::unique_ptr<MembershipClient> Client(MembershipOptions options) {
    return std::make_unique<MembershipClient>(
        transport_->Connect(coordinator_.address(), pb::ROLE_COORDINATOR), std::move(options));
  }

  const std::unique_ptr<Transport> transport_;
  FakeCoordinator coordinator_;
  Events events_;
};

TEST_F(MembershipTest, RegistersBeatsAndLeaves) {
  auto client = Client(Options());
  MU_ASSERT_OK(client->Register());
  EXPECT_EQ(client->registration().index(), 2u);
  events_.WaitFor(&events_.beats, 3);
  const pb::HeartbeatRequest beat = coordinator_.last_beat();
  EXPECT_EQ(beat.job(), 9u);
  EXPECT_EQ(beat.epoch(), 3u);
  EXPECT_EQ(beat.index(), 2u);
  EXPECT_EQ(beat.incarnation(), client->incarnation().value());
  MU_EXPECT_OK(client->Leave("done"));
  ASSERT_EQ(coordinator_.left().size(), 1u);
  EXPECT_EQ(coordinator_.left()[0].reason(), "done");
  EXPECT_EQ(events_.Get(&events_.registered), 1);
}

TEST_F(MembershipTest, LeasesCountFromTheSendingOfTheRequest) {
  ManualClock clock;
  coordinator_.UseClock(&clock);
  int64_t sent = 0;  // each request takes a second, and the next one follows
  const auto expect = [&](int64_t sent_ns) {
    EXPECT_EQ(sent_ns, sent);
    sent += absl::ToInt64Nanoseconds(absl::Seconds(1));
  };
  MembershipOptions options = Options();
  options.clock = &clock;
  options.on_registered = [&](const pb::RegisterReply&, int64_t sent_ns) { expect(sent_ns); };
  options.on_heartbeat = [&](const pb::HeartbeatReply&, int64_t sent_ns) {
    expect(sent_ns);
    events_.Add(&events_.beats);
  };
  auto client = Client(options);
  MU_ASSERT_OK(client->Register());
  events_.WaitFor(&events_.beats, 3);
  client->Stop();
}

TEST_F(MembershipTest, WaitsForACoordinatorThatIsNotThereYet) {
  coordinator_.Stop();
  auto client = Client(Options());
  std::thread late([&] { coordinator_.Start(coordinator_.address()); });
  MU_EXPECT_OK(client->Register());
  late.join();
}

TEST_F(MembershipTest, SaysWhyTheCoordinatorDoesNotAnswerNowAndThen) {
  ManualClock clock;
  static int repetition = 0;  // its lines are still there
  const std::string error = absl::StrCat("no coordinator, in repetition ", ++repetition, ".");
  coordinator_.FailRegister(absl::UnavailableError(error));
  MembershipOptions options = Options();
  options.clock = &clock;
  auto client = Client(options);
  const auto lines = [&] {
    int count = 0;
    for (const std::string& line : LastLogLines()) count += absl::StrContains(line, error);
    return count;
  };
  std::thread waiting([&] { client->Register().IgnoreError(); });
  EXPECT_TRUE(testing::Eventually([&] { return coordinator_.registrations() >= 4; }));
  EXPECT_EQ(lines(), 1);
  clock.Advance(absl::Seconds(31));
  EXPECT_TRUE(testing::Eventually([&] { return lines() == 2; }));
  client->RequestStop();
  waiting.join();
}

TEST_F(MembershipTest, GivesUpAfterTheOrphanTimeout) {
  coordinator_.Stop();
  MembershipOptions options = Options();
  options.orphan_timeout = absl::Milliseconds(30);
  EXPECT_THAT(Client(options)->Register(),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("--coordinator")));
}

TEST_F(MembershipTest, ARefusalEndsItAtOnce) {
  pb::ErrorDetail detail;
  detail.set_kind(pb::ERROR_OTHER_JOB);
  coordinator_.FailRegister(WithDetail(absl::FailedPreconditionError("full"), detail));
  const absl::Status status = Client(Options())->Register();
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("full")));
  EXPECT_EQ(KindOf(status), pb::ERROR_OTHER_JOB);
  EXPECT_EQ(coordinator_.registrations(), 1);
}

TEST_F(MembershipTest, StopEndsARegistration) {
  coordinator_.Stop();
  auto client = Client(Options());
  absl::Status status;
  std::thread waiting([&] { status = client->Register(); });
  client->RequestStop();
  waiting.join();
  EXPECT_THAT(status, HasCode(absl::StatusCode::kCancelled));
}

TEST_F(MembershipTest, RegistersAgainWhereItIsForgotten) {
  auto client = Client(Options());
  MU_ASSERT_OK(client->Register());
  coordinator_.FailBeats(RegisterAgain());
  events_.WaitFor(&events_.registered, 3);
  coordinator_.FailBeats(absl::OkStatus());
  events_.WaitFor(&events_.beats, events_.Get(&events_.beats) + 2);
  const auto registered = coordinator_.registered();
  EXPECT_EQ(registered[0].index(), -1);
  EXPECT_EQ(registered[1].index(), 2) << "it asks for the place that it had";
  EXPECT_EQ(registered[1].incarnation(), registered[0].incarnation());
  client->Stop();
  EXPECT_EQ(events_.Get(&events_.lost), 0);
}

TEST_F(MembershipTest, AnotherJobOrPlaceMeansLost) {
  auto client = Client(Options());
  MU_ASSERT_OK(client->Register());
  coordinator_.SetReply(/*job=*/10, /*index=*/2);
  coordinator_.FailBeats(RegisterAgain());
  events_.WaitFor(&events_.lost, 1);
  EXPECT_THAT(events_.lost_status(), HasCode(absl::StatusCode::kFailedPrecondition));
}

TEST_F(MembershipTest, WithoutAWishItMayTakeAnotherPlace) {
  MembershipOptions options = Options();
  options.may_move = [] { return true; };
  auto client = Client(options);
  MU_ASSERT_OK(client->Register());
  coordinator_.SetReply(/*job=*/9, /*index=*/5);
  coordinator_.FailBeats(RegisterAgain());
  events_.WaitFor(&events_.registered, 2);
  coordinator_.FailBeats(absl::OkStatus());
  events_.WaitFor(&events_.beats, events_.Get(&events_.beats) + 2);
  EXPECT_EQ(client->registration().index(), 5u);
  EXPECT_EQ(coordinator_.last_beat().index(), 5u);
  EXPECT_EQ(events_.Get(&events_.lost), 0);
  client->Stop();
  const auto registered = coordinator_.registered();
  EXPECT_FALSE(registered[0].may_move()) << "any index is good";
  EXPECT_EQ(registered[1].index(), 2);
  EXPECT_TRUE(registered[1].may_move());
}

TEST_F(MembershipTest, WithAWishItMayNot) {
  MembershipOptions options = Options();
  options.index = 2;
  options.may_move = [] { return true; };
  auto client = Client(options);
  MU_ASSERT_OK(client->Register());
  coordinator_.SetReply(/*job=*/9, /*index=*/5);
  coordinator_.FailBeats(RegisterAgain());
  events_.WaitFor(&events_.lost, 1);
  EXPECT_THAT(events_.lost_status(), HasCode(absl::StatusCode::kFailedPrecondition));
  EXPECT_FALSE(coordinator_.registered().back().may_move());
}

TEST_F(MembershipTest, AVanishedCoordinatorMeansLostAfterTheOrphanTimeout) {
  MembershipOptions options = Options();
  options.orphan_timeout = absl::Milliseconds(50);
  auto client = Client(options);
  MU_ASSERT_OK(client->Register());
  events_.WaitFor(&events_.beats, 1);
  coordinator_.Stop();
  events_.WaitFor(&events_.lost, 1);
  EXPECT_THAT(events_.lost_status(), HasCode(absl::StatusCode::kUnavailable));
}

TEST_F(MembershipTest, AnotherEpochIsTakenOnlyIfItIsNewer) {
  auto client = Client(Options());
  MU_ASSERT_OK(client->Register());
  coordinator_.SetEpoch(2);
  coordinator_.FailBeats(RegisterAgain());
  while (coordinator_.registrations() < 3) std::this_thread::yield();
  EXPECT_EQ(client->registration().epoch(), 3u) << "an older coordinator that woke up";
  EXPECT_EQ(events_.Get(&events_.registered), 1);
  coordinator_.SetEpoch(4);
  events_.WaitFor(&events_.registered, 2);
  EXPECT_EQ(client->registration().epoch(), 4u);
  client->Stop();
  EXPECT_EQ(events_.Get(&events_.lost), 0);
}

TEST_F(MembershipTest, WhoDrainsBeatsUntilTheCoordinatorHasAnswered) {
  auto client = Client(Options());
  MU_ASSERT_OK(client->Register());
  coordinator_.HoldLeaves();
  absl::Status left = absl::UnknownError("not yet");
  std::thread draining([&] { left = client->Drain("SIGTERM", absl::Minutes(5)); });
  coordinator_.WaitForLeave();
  events_.WaitFor(&events_.beats, events_.Get(&events_.beats) + 3);
  coordinator_.FailBeats(RegisterAgain());
  coordinator_.ReleaseLeaves();
  draining.join();
  MU_EXPECT_OK(left);
  EXPECT_EQ(coordinator_.registrations(), 1) << "who goes does not come back";
  ASSERT_EQ(coordinator_.left().size(), 1u);
  EXPECT_EQ(coordinator_.left()[0].reason(), "SIGTERM");
  EXPECT_EQ(events_.Get(&events_.lost), 0);
}

TEST_F(MembershipTest, DrainingEndsWithItsTime) {
  auto client = Client(Options());
  MU_ASSERT_OK(client->Register());
  coordinator_.HoldLeaves();
  EXPECT_THAT(client->Drain("SIGTERM", absl::Milliseconds(30)),
              HasCode(absl::StatusCode::kDeadlineExceeded));
  coordinator_.ReleaseLeaves();
  coordinator_.Stop();
  EXPECT_THAT(client->Drain("SIGTERM", absl::Milliseconds(30)),
              HasCode(absl::StatusCode::kUnavailable));
}

TEST_F(MembershipTest, AShortAbsenceIsBridged) {
  auto client = Client(Options());
  MU_ASSERT_OK(client->Register());
  events_.WaitFor(&events_.beats, 1);
  coordinator_.FailBeats(absl::UnavailableError("busy"));
  coordinator_.FailBeats(absl::OkStatus());
  events_.WaitFor(&events_.beats, 3);
  client->Stop();
  EXPECT_EQ(events_.Get(&events_.lost), 0);
}

}  // namespace
}  // namespace mu
