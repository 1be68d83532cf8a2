// The parts that both transports stand on: threads, timers, frames, telemetry by call.
#include <atomic>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "common/base/hash.h"
#include "common/base/steady_now.h"
#include "common/rpc/frame.h"
#include "common/rpc/telemetry_service.h"
#include "common/rpc/thread_pool.h"
#include "common/rpc/timer_queue.h"
#include "proto/telemetry.pb.h"
#include "tests/common/rpc/transport_fixture.h"

namespace mu {
namespace {

TEST(ThreadPool, GrowsAsTasksBlockAndRunsAll) {
  std::atomic<int> ran{0};
  {
    ThreadPool pool(64);
    Notification release;
    std::atomic<int> blocked{0};
    for (int i = 0; i < 32; ++i) {
      pool.Post([&] {
        ++blocked;
        release.Wait();
        ++ran;
      });
    }
    while (blocked < 32) std::this_thread::yield();  // all at once
    release.Notify();
    for (int i = 0; i < 1000; ++i) pool.Post([&] { ++ran; });
  }
  EXPECT_EQ(ran, 1032);
}

TEST(ThreadPool, NeverMoreThanItsLimit) {
  std::atomic<int> now{0}, most{0};
  {
    ThreadPool pool(2);
    for (int i = 0; i < 500; ++i) {
      pool.Post([&] {
        const int count = ++now;
        int seen = most;
        while (count > seen && !most.compare_exchange_weak(seen, count)) {
        }
        std::this_thread::yield();
        --now;
      });
    }
  }
  EXPECT_LE(most, 2);
}

TEST(ThreadPool, MayBeDestroyedByItsOwnThread) {
  auto* pool = new ThreadPool(4);
  Notification gone;
  pool->Post([&] {
    delete pool;
    gone.Notify();
  });
  gone.Wait();
}

TEST(ThreadPool, IdleThreadsEndAndComeBack) {
  ThreadPool pool(4, absl::ZeroDuration());
  for (int i = 0; i < 100; ++i) {
    Notification ran;
    pool.Post([&] { ran.Notify(); });
    ran.Wait();
  }
}

TEST(TimerQueue, CallsInOrderAndCancels) {
  TimerQueue queue;
  Mutex mutex;
  std::vector<int> order;
  Notification ready, last;
  // All are due when they may run, so that no delay of this thread changes their order.
  queue.CallAt(absl::InfinitePast(), [&] { ready.Wait(); });
  const absl::Time now = SteadyNow();
  auto task = [&](int number) {
    return [&, number] {
      MutexLock lock(&mutex);
      order.push_back(number);
      if (number == 3) last.Notify();
    };
  };
  queue.CallAt(now - absl::Milliseconds(10), task(3));
  queue.CallAt(now - absl::Milliseconds(30), task(1));
  const uint64_t dropped = queue.CallAt(now - absl::Milliseconds(25), task(9));
  queue.CallAt(now - absl::Milliseconds(20), task(2));
  EXPECT_TRUE(queue.Cancel(dropped));
  EXPECT_FALSE(queue.Cancel(dropped));
  ready.Notify();
  last.Wait();
  MutexLock lock(&mutex);
  EXPECT_EQ(order, (std::vector<int>{1, 2, 3}));
}

TEST(TimerQueue, DropsWhatIsNotDueAtItsEnd) {
  auto owned = std::make_shared<int>(1);
  {
    TimerQueue queue;
    queue.CallAfter(absl::Hours(1), [owned] {});
    EXPECT_EQ(owned.use_count(), 2);
  }
  EXPECT_EQ(owned.use_count(), 1);
}

TEST(Frame, HeaderAndPayloadRoundTrip) {
  for (const int name_size : {0, 1, 10, 11, 12, 13, 100}) {
    pb::CounterProto header;
    header.set_name(std::string(static_cast<size_t>(name_size), 'n'));
    header.set_value(5);
    FrameWriter writer(header, 100);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(writer.payload) % kFrameAlignment, 0u);
    for (int i = 0; i < 100; ++i) writer.payload[i] = static_cast<char>(i);
    const Buffer frame = std::move(writer.buffer).Finish();
    pb::CounterProto read;
    MU_ASSERT_OK_AND_ASSIGN(const absl::Span<const char> payload, ParseFrame(frame, &read));
    EXPECT_EQ(read.value(), 5);
    EXPECT_EQ(read.name().size(), static_cast<size_t>(name_size));
    ASSERT_EQ(payload.size(), 100u);
    EXPECT_EQ(payload[99], 99);
  }
}

TEST(Frame, GarbageIsRefused) {
  pb::CounterProto header;
  EXPECT_FALSE(ParseFrame(Buffer(), &header).ok());
  EXPECT_FALSE(ParseFrame(Text("abc"), &header).ok());
  EXPECT_FALSE(ParseFrame(Text("\xFF\xFF\xFF\xFFxxxxxxxxxxxxxxxxxxxxxxx"), &header).ok());
  SplitMix random(3);
  for (int i = 0; i < 2000; ++i) {
    std::string bytes(random.Below(64), '\0');
    for (char& byte : bytes) byte = static_cast<char>(random.Next());
    if (bytes.size() > 4) bytes[1] = bytes[2] = bytes[3] = 0;  // sizes that are near the truth
    const Buffer frame((std::string(bytes)));
    const auto payload = ParseFrame(frame, &header);
    if (payload.ok()) {
      EXPECT_LE(payload->size(), frame.size());
    }
  }
}

TEST(TelemetryService, AnswersByCall) {
  Telemetry telemetry;
  telemetry.counter("rows")->Add(3);
  auto transport = NewMemoryTransport();
  MethodTable methods;
  AddTelemetryMethod(methods, "muster.Worker", &telemetry);
  MU_ASSERT_OK_AND_ASSIGN(auto server, transport->Listen("memory:0", std::move(methods)));
  auto channel = transport->Connect(server->address(), pb::ROLE_PSSERVER);
  pb::TelemetryRequest request;
  request.set_trace(true);
  MU_ASSERT_OK_AND_ASSIGN(
      const pb::TelemetryReply reply,
      (Call<pb::TelemetryReply>(*channel, "/muster.Worker/GetTelemetry", request)));
  ASSERT_EQ(reply.counters_size(), 1);
  EXPECT_EQ(reply.counters(0).value(), 3);
  EXPECT_TRUE(telemetry.tracing());
}

}  // namespace
}  // namespace mu
