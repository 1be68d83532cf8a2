#include "common/client/feed_client.h"

#include <atomic>
#include <deque>
#include <thread>
#include <utility>

#include "common/base/mutex.h"
#include "common/rpc/timer_queue.h"
#include "gtest/gtest.h"

namespace mu {
namespace {

class Stream final : public ClientStream {
 public:
  explicit Stream(std::function<void(absl::Status)> done) : done_(std::move(done)) {}
  void Cancel() override { End(absl::CancelledError()); }
  void Poke() override {}
  void End(absl::Status status) {
    if (!ended_.exchange(true)) done_(std::move(status));
  }

 private:
  std::function<void(absl::Status)> done_;
  std::atomic<bool> ended_{false};
};

// Streams that nobody answers and that break when the test says so.
class BreakingChannel final : public Channel {
 public:
  std::shared_ptr<ClientCall> Unary(const std::string&, Buffer, CallOptions,
                                    std::function<void(absl::Status, Buffer)>) override {
    return nullptr;
  }
  std::shared_ptr<ClientCall> ServerStream(const std::string&, Buffer, CallOptions,
                                           std::function<void(Buffer)>,
                                           std::function<void(absl::Status)>) override {
    return nullptr;
  }
  std::shared_ptr<ClientStream> Converse(const std::string&, Conversation,
                                         std::function<void(absl::Status)> done) override {
    auto opening = std::make_shared<Stream>(std::move(done));
    if (++opened == 1) stream = opening;
    return opening;
  }
  std::atomic<int> opened{0};
  std::shared_ptr<Stream> stream;  // the first
};

// What the client told, in order.
struct Told {
  std::atomic<int> ends{0};
  std::atomic<int> breaks_after_the_end{0};
  Notification ended;
};

std::shared_ptr<FeedClient> Open(const std::shared_ptr<BreakingChannel>& channel, Told* told,
                                 absl::Duration give_up = absl::Seconds(100)) {
  FeedClient::Options options;
  options.channel = channel;
  options.give_up = give_up;
  options.on_reply = [](const muster::FeedReply&) {};
  options.on_broken = [told](const absl::Status&) { told->breaks_after_the_end += told->ends; };
  options.on_ended = [told](const absl::Status&) {
    if (++told->ends == 1) told->ended.Notify();
  };
  return FeedClient::Open(std::move(options));
}

// Whoever closes a stream waits for its end, and for nothing after it.
TEST(FeedClientTest, TellsItsEndOnceThoughItIsClosedAsItBreaks) {
  std::deque<Told> told;
  for (int round = 0; round < 200; ++round) {
    auto channel = std::make_shared<BreakingChannel>();
    auto client = Open(channel, &told.emplace_back());
    std::atomic<int> ready{0};
    const auto together = [&ready] {
      for (++ready; ready < 2;) std::this_thread::yield();
    };
    std::thread breaks([&] {
      together();
      channel->stream->End(absl::UnavailableError("it broke"));
    });
    together();
    client->Close();
    breaks.join();
  }
  for (Told& one : told) one.ended.Wait();
  Notification all_told;
  TimerQueue::Process().CallAfter(absl::ZeroDuration(), [&] { all_told.Notify(); });
  all_told.Wait();
  for (const Told& one : told) {
    EXPECT_EQ(one.ends, 1);
    EXPECT_EQ(one.breaks_after_the_end, 0);
  }
}

// A process that stands still, as far as timers see.
TEST(FeedClientTest, TimeInWhichNothingRanIsNotTheWorkersSilence) {
  constexpr absl::Duration kGiveUp = absl::Milliseconds(400);
  const auto channel = std::make_shared<BreakingChannel>();
  Told told;
  Notification never, looked;
  const auto client = Open(channel, &told, kGiveUp);
  TimerQueue::Process().CallAfter(absl::ZeroDuration(), [&] {
    never.WaitFor(2 * kGiveUp);
    // After what was due meanwhile.
    TimerQueue::Process().CallAfter(absl::ZeroDuration(), [&] { looked.Notify(); });
  });
  looked.Wait();
  EXPECT_FALSE(told.ended.HasBeenNotified());
  told.ended.Wait();  // of the time since
}

TEST(FeedClientTest, IsClosedByWhoHearsThatItBroke) {
  auto channel = std::make_shared<BreakingChannel>();
  Told told;
  std::shared_ptr<FeedClient> client;
  FeedClient::Options options;
  options.channel = channel;
  options.give_up = absl::Seconds(100);
  options.on_reply = [](const muster::FeedReply&) {};
  options.on_broken = [&](const absl::Status&) {
    client->Close();
    EXPECT_EQ(told.ends, 0);  // not from within
  };
  options.on_ended = [&](const absl::Status& status) {
    EXPECT_TRUE(status.ok()) << status;
    if (++told.ends == 1) told.ended.Notify();
  };
  client = FeedClient::Open(std::move(options));
  channel->stream->End(absl::UnavailableError("it broke"));
  told.ended.Wait();
  EXPECT_EQ(told.ends, 1);
  EXPECT_EQ(channel->opened, 1);
}

}  // namespace
}  // namespace mu
