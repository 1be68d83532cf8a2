// Streams in both directions, over every transport.
#include <deque>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/rpc/refused.h"
#include "tests/common/rpc/transport_fixture.h"

namespace mu {
namespace {

using testing::HasCode;

// One end: what it has to say, and what it has heard.
class End {
 public:
  Conversation conversation() {
    return {[this](Buffer* message) {
              MutexLock lock(&mutex_);
              if (unsaid_.empty()) return false;
              *message = Buffer(std::move(unsaid_.front()));
              unsaid_.pop_front();
              return true;
            },
            [this](const Buffer& message) {
              MutexLock lock(&mutex_);
              heard_.push_back(TextOf(message));
              changed_.SignalAll();
            }};
  }
  void Say(const std::string& text) {
    MutexLock lock(&mutex_);
    unsaid_.push_back(text);
  }
  std::vector<std::string> WaitForHeard(size_t count) {
    MutexLock lock(&mutex_);
    while (heard_.size() < count) changed_.Wait(&mutex_);
    return heard_;
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  std::deque<std::string> unsaid_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::string> heard_ ABSL_GUARDED_BY(mutex_);
};

class ConverseTest : public TransportTest {
 protected:
  void Start() {
    MethodTable methods;
    methods.AddConversation("/test/Talk", RunOn::kTransportThread,
                            [this](std::shared_ptr<ServerCall> call, Buffer first) {
                              first_ = TextOf(first);
                              call->Converse(callee_.conversation());
                              call->OnCancel([this] { cancelled_.Notify(); });
                              call_ = std::move(call);
                              opened_.Notify();
                            });
    server_ = Listen(std::move(methods));
    channel_ = transport_->Connect(server_->address(), pb::ROLE_WORKER);
  }
  ~ConverseTest() override {
    if (call_ != nullptr) call_->Finish(absl::OkStatus());
    if (stream_ != nullptr) ended_.Wait();
  }
  void Open() {
    stream_ = channel_->Converse("/test/Talk", caller_.conversation(), [this](absl::Status status) {
      status_ = std::move(status);
      ended_.Notify();
    });
    stream_->Poke();
  }

  End caller_, callee_;
  std::string first_;
  Notification opened_, cancelled_, ended_;
  absl::Status status_;
  std::shared_ptr<ServerCall> call_;
  std::unique_ptr<RpcServer> server_;
  std::shared_ptr<Channel> channel_;
  std::shared_ptr<ClientStream> stream_;
};

TEST_P(ConverseTest, BothSayAndHearInOrder) {
  Start();
  caller_.Say("first");
  Open();
  opened_.Wait();
  EXPECT_EQ(first_, "first");
  constexpr size_t kMessages = 2000;
  for (size_t i = 0; i < kMessages; ++i) {
    caller_.Say(absl::StrCat("caller ", i));
    callee_.Say(absl::StrCat("callee ", i));
    if (i % 3 == 0) stream_->Poke();
    if (i % 5 == 0) call_->Poke();
  }
  stream_->Poke();
  call_->Poke();
  const auto from_caller = callee_.WaitForHeard(kMessages);
  const auto from_callee = caller_.WaitForHeard(kMessages);
  for (size_t i = 0; i < kMessages; ++i) {
    ASSERT_EQ(from_caller[i], absl::StrCat("caller ", i));
    ASSERT_EQ(from_callee[i], absl::StrCat("callee ", i));
  }
}

TEST_P(ConverseTest, TheHandlersStatusEndsIt) {
  Start();
  caller_.Say("first");
  Open();
  opened_.Wait();
  callee_.Say("last words");
  call_->Poke();
  EXPECT_EQ(caller_.WaitForHeard(1)[0], "last words");
  call_->Finish(absl::AbortedError("enough"));
  ended_.Wait();
  EXPECT_THAT(status_, HasCode(absl::StatusCode::kAborted));
  stream_->Poke();  // harmless
}

TEST_P(ConverseTest, CancelReachesTheHandler) {
  Start();
  caller_.Say("first");
  Open();
  opened_.Wait();
  stream_->Cancel();
  ended_.Wait();
  EXPECT_THAT(status_, HasCode(absl::StatusCode::kCancelled));
  cancelled_.Wait();
  call_->Poke();  // harmless
}

TEST_P(ConverseTest, TheEndOfTheServerEndsIt) {
  Start();
  caller_.Say("first");
  Open();
  opened_.Wait();
  server_->Shutdown();
  ended_.Wait();
  EXPECT_THAT(status_, HasCode(absl::StatusCode::kUnavailable));
  cancelled_.Wait();
  call_ = nullptr;
}

TEST_P(ConverseTest, NobodyListens) {
  Start();
  server_->Shutdown();
  caller_.Say("first");
  Open();
  ended_.Wait();
  EXPECT_THAT(status_, HasCode(absl::StatusCode::kUnavailable));
  EXPECT_TRUE(IsRefused(status_)) << status_;
}

TEST_P(ConverseTest, AMethodThatIsNotThereIsNotRefused) {
  auto server = Listen(EchoMethods());
  channel_ = transport_->Connect(server->address(), pb::ROLE_WORKER);
  caller_.Say("first");
  Open();
  ended_.Wait();
  EXPECT_THAT(status_, HasCode(absl::StatusCode::kUnimplemented));
  EXPECT_FALSE(IsRefused(status_));
}

#if MUSTER_WITH_GRPC
INSTANTIATE_TEST_SUITE_P(Transports, ConverseTest, ::testing::Values("memory", "grpc"));
#else
INSTANTIATE_TEST_SUITE_P(Transports, ConverseTest, ::testing::Values("memory"));
#endif

}  // namespace
}  // namespace mu
