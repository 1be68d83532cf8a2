// The two ends of the stream between coordinator and worker, and connections that break.
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/error_kind.h"
#include "common/client/feed_client.h"
#include "common/rpc/faults.h"
#include "common/rpc/feed_kinds.h"
#include "common/rpc/refused.h"
#include "common/rpc/status_proto.h"
#include "tests/testing/matchers.h"
#include "tests/testing/played_feed.h"
#include "tests/testing/wait.h"

namespace mu {
namespace {

using testing::Eventually;
using testing::HasCode;

class FeedTest : public ::testing::Test {
 protected:
  FeedTest() : transport_(NewFaultyTransport(network_, faults_)) { Listen(); }
  ~FeedTest() override {
    if (feed_ != nullptr) feed_->Close();
    if (feed_ != nullptr) ended_.Wait();
    server_->Shutdown();
    calls_.clear();
  }
  void Listen() {
    MethodTable methods;
    played_.AddMethod(&methods);
    server_ = network_->Listen("memory:77", std::move(methods)).value();
  }
  FeedClient::Options Options() {
    FeedClient::Options options;
    options.channel = transport_->Connect("memory:77", pb::ROLE_WORKER);
    options.hello.set_stream(1);
    options.on_reply = [this](const pb::FeedReply& reply) {
      MutexLock lock(&mutex_);
      for (const std::string& bytes : reply.replies()) {
        EXPECT_TRUE(replies_.emplace_back().ParseFromString(bytes));
      }
    };
    options.on_broken = [this](const absl::Status&) { ++broken_; };
    options.on_ended = [this](const absl::Status& status) {
      status_ = status;
      ended_.Notify();
    };
    return options;
  }
  void Open() { feed_ = FeedClient::Open(Options()); }
  void Run(uint64_t run) {
    pb::FeedRequest said;
    said.add_runs()->set_run(run);
    Say(said);
  }
  void Say(const pb::FeedRequest& said) {
    feed_->Send(said.ByteSizeLong(),
                [said](std::string* message) { said.AppendToString(message); });
  }
  size_t runs() {
    MutexLock lock(&mutex_);
    return requests_.size();
  }
  size_t replies() {
    MutexLock lock(&mutex_);
    return replies_.size();
  }

  const std::shared_ptr<FaultPlan> faults_ = std::make_shared<FaultPlan>(1);
  const std::shared_ptr<Transport> network_ = NewMemoryTransport();
  const std::unique_ptr<Transport> transport_;
  Mutex mutex_;
  std::vector<pb::RunRequest> requests_ ABSL_GUARDED_BY(mutex_);
  std::vector<RunLeases> leases_ ABSL_GUARDED_BY(mutex_);
  std::deque<std::shared_ptr<ServerCall>> calls_;  // of runs that are not answered at once
  std::vector<pb::RunReply> replies_ ABSL_GUARDED_BY(mutex_);
  bool answers_ = true;
  std::atomic<int> broken_{0};
  absl::Status status_;
  Notification ended_;
  testing::PlayedFeed played_{
      [this](std::shared_ptr<ServerCall> call, pb::RunRequest request, RunLeases leases) {
        pb::RunReply reply;
        reply.add_steps()->set_step(static_cast<uint32_t>(request.run()));
        {
          MutexLock lock(&mutex_);
          requests_.push_back(std::move(request));
          leases_.push_back(std::move(leases));
          if (!answers_) return calls_.push_back(std::move(call));
        }
        call->Send(Buffer(reply.SerializeAsString()));
        call->Finish(absl::AbortedError("so it ends"), {});
      }};
  std::unique_ptr<RpcServer> server_;
  std::shared_ptr<FeedClient> feed_;
};

// For each kind of message, and each fault.
class FaultyFeed : public FeedTest, public ::testing::WithParamInterface<std::string> {};

TEST_P(FaultyFeed, EverythingArrivesOnceAndInOrder) {
  constexpr uint64_t kRuns = 300;
  for (const Fault fault :
       {Fault::kLoseRequest, Fault::kDuplicate, Fault::kLateCopy, Fault::kDelay}) {
    faults_->Add({.method = absl::StrCat("/Feed/", GetParam()),
                  .fault = fault,
                  .probability = 0.05,
                  .delay = absl::Milliseconds(1)});
    faults_->Add({.method = absl::StrCat("/Feed/", GetParam()), .fault = fault, .times = 1});
  }
  Open();
  for (uint64_t run = 1; run <= kRuns; ++run) {
    pb::FeedRequest said;
    pb::FeedLease& lease = *said.add_leases();
    lease.set_id(run);
    lease.mutable_lease()->set_index(1000 + run);
    pb::RunRequest& request = *said.add_runs();
    request.set_run(run);
    request.add_batches()->set_lease(run);
    request.add_upcoming(run);
    if (run > 1) said.add_forgotten_leases(run - 1);
    if (run % 10 == 0) said.add_unwanted_runs(run);
    Say(said);
    if (run % 50 == 0) ASSERT_TRUE(Eventually([&] { return replies() >= 2 * run; }));
  }
  ASSERT_TRUE(Eventually([&] { return replies() == 2 * kRuns; }));
  EXPECT_GT(faults_->hits(), 0);
  MutexLock lock(&mutex_);
  ASSERT_EQ(requests_.size(), kRuns);
  for (uint64_t i = 0; i < kRuns; ++i) {
    ASSERT_EQ(requests_[i].run(), i + 1);
    ASSERT_EQ(leases_[i].batches[0].lease->index(), 1001 + i);
    ASSERT_EQ(leases_[i].upcoming[0]->index(), 1001 + i);
    ASSERT_EQ(replies_[2 * i].run(), i + 1);
    ASSERT_EQ(replies_[2 * i].steps(0).step(), i + 1);
    ASSERT_EQ(replies_[2 * i + 1].run(), i + 1);
    ASSERT_THAT(FromProto(replies_[2 * i + 1].end()), HasCode(absl::StatusCode::kAborted));
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, FaultyFeed,
                         ::testing::Values("Hello", "Lease", "Run", "Unwanted", "Forget", "Result",
                                           "End", "ConfirmReply"),
                         [](const auto& info) { return info.param; });

TEST_F(FeedTest, LittleIsKeptThoughOneSideOnlyHears) {
  Open();
  answers_ = false;
  Run(1);
  ASSERT_TRUE(Eventually([&] { return runs() == 1; }));
  pb::RunReply large;
  large.add_steps()->set_bad_record_message(std::string(100'000, 'x'));
  for (int i = 0; i < 200; ++i) calls_[0]->Send(Buffer(large.SerializeAsString()));
  EXPECT_TRUE(Eventually([&] { return replies() == 200; })) << "20 MB through a window of 4";
  EXPECT_TRUE(faults_->called().contains("/muster.Worker/Feed/Confirm"));
}

TEST_F(FeedTest, AnEndTakesItsResultAlong) {
  Open();
  answers_ = false;
  Run(1);
  ASSERT_TRUE(Eventually([&] { return runs() == 1; }));
  pb::RunReply last;
  last.add_steps()->set_step(7);
  calls_[0]->Finish(absl::OkStatus(), Buffer(last.SerializeAsString()));
  ASSERT_TRUE(Eventually([&] { return replies() == 1; }));
  MutexLock lock(&mutex_);
  EXPECT_EQ(replies_[0].steps(0).step(), 7u);
  EXPECT_TRUE(replies_[0].has_end());
}

// The name of a file, say. A reply that does not parse would be the worker's end.
TEST_F(FeedTest, AnErrorMayHaveAnyBytes) {
  Open();
  answers_ = false;
  Run(1);
  ASSERT_TRUE(Eventually([&] { return runs() == 1; }));
  calls_[0]->Finish(absl::InvalidArgumentError("caf\xE9.csv is empty"), {});
  ASSERT_TRUE(Eventually([&] { return replies() == 1; }));
  MutexLock lock(&mutex_);
  EXPECT_THAT(FromProto(replies_[0].end()), testing::StatusIs(absl::StatusCode::kInvalidArgument,
                                                              ::testing::Eq("caf?.csv is empty")));
}

TEST_F(FeedTest, AnUnwantedRunHearsSo) {
  Open();
  answers_ = false;
  Run(1);
  Run(2);
  ASSERT_TRUE(Eventually([&] { return runs() == 2; }));
  pb::FeedRequest said;
  said.add_unwanted_runs(2);
  Say(said);
  EXPECT_TRUE(Eventually([&] { return calls_[1]->IsCancelled(); }));
  EXPECT_FALSE(calls_[0]->IsCancelled());
}

TEST_F(FeedTest, WhatIsLeftIsUnwantedAfterClose) {
  Open();
  answers_ = false;
  Run(1);
  ASSERT_TRUE(Eventually([&] { return runs() == 1; }));
  feed_->Close();
  ended_.Wait();
  MU_EXPECT_OK(status_);
  EXPECT_TRUE(Eventually([&] { return calls_[0]->IsCancelled(); }));
}

TEST_F(FeedTest, ABrokenConnectionEndsNoRun) {
  Open();
  answers_ = false;
  Run(1);
  ASSERT_TRUE(Eventually([&] { return runs() == 1; }));
  faults_->Add({.method = "/Feed/Run", .fault = Fault::kLoseRequest, .times = 1});
  Run(2);
  ASSERT_TRUE(Eventually([&] { return runs() == 2; }));
  EXPECT_EQ(broken_, 1);
  EXPECT_EQ(played_.connections, 2);
  EXPECT_FALSE(calls_[0]->IsCancelled());
  calls_[0]->Finish(absl::OkStatus(), {});
  EXPECT_TRUE(Eventually([&] { return replies() == 1; }));
}

TEST_F(FeedTest, WhoeverIsNotCalledAgainWaitsNoLongerThanItsPatience) {
  FeedClient::Options options = Options();
  options.hello.set_patience_ms(20);
  feed_ = FeedClient::Open(std::move(options));
  answers_ = false;
  Run(1);
  ASSERT_TRUE(Eventually([&] { return runs() == 1; }));
  faults_->Add({.method = "/muster.Worker/Feed", .fault = Fault::kLoseRequest});
  faults_->Add({.method = "/Feed/Run", .fault = Fault::kLoseRequest, .times = 1});
  Run(2);
  EXPECT_TRUE(Eventually([&] { return calls_[0]->IsCancelled(); }));
}

TEST_F(FeedTest, AProcessThatIsGoneIsNoticedAtOnce) {
  Open();
  answers_ = false;
  Run(1);
  ASSERT_TRUE(Eventually([&] { return runs() == 1; }));
  server_->Shutdown();
  ended_.Wait();
  EXPECT_TRUE(IsRefused(status_)) << status_;
  feed_ = nullptr;
}

TEST_F(FeedTest, AWorkerThatCannotBeReachedIsGivenUp) {
  faults_->Add({.method = "/muster.Worker/Feed", .fault = Fault::kLoseRequest});
  FeedClient::Options options = Options();
  options.give_up = absl::Milliseconds(50);
  feed_ = FeedClient::Open(std::move(options));
  ended_.Wait();
  EXPECT_THAT(status_, HasCode(absl::StatusCode::kUnavailable));
  feed_ = nullptr;
}

// It opens, and says nothing.
TEST_F(FeedTest, AWorkerThatDoesNotAnswerIsGivenUp) {
  server_->Shutdown();
  MethodTable methods;
  std::shared_ptr<ServerCall> silent;
  methods.AddConversation("/muster.Worker/Feed", RunOn::kTransportThread,
                          [&](std::shared_ptr<ServerCall> call, Buffer) {
                            call->Converse({[](Buffer*) { return false; }, [](Buffer) {}});
                            silent = std::move(call);
                          });
  server_ = network_->Listen("memory:77", std::move(methods)).value();
  FeedClient::Options options = Options();
  options.give_up = absl::Milliseconds(50);
  feed_ = FeedClient::Open(std::move(options));
  ended_.Wait();
  EXPECT_THAT(status_, HasCode(absl::StatusCode::kUnavailable));
  feed_ = nullptr;
  server_->Shutdown();
  silent = nullptr;
}

TEST_F(FeedTest, AWorkerOfAnEarlierVersionKnowsNoStream) {
  server_->Shutdown();
  server_ = network_->Listen("memory:77", MethodTable()).value();
  Open();
  ended_.Wait();
  EXPECT_THAT(status_, HasCode(absl::StatusCode::kUnimplemented));
  feed_ = nullptr;
}

}  // namespace
}  // namespace mu
