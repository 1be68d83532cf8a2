#include "bench/scale/direct.h"

#include <deque>
#include <memory>
#include <utility>

#include "absl/time/clock.h"
#include "bench/process_times.h"
#include "common/base/mutex.h"
#include "common/obs/telemetry.h"
#include "common/rpc/transport.h"

namespace mu::scale {
namespace {

// As large as a small RunRequest.
constexpr size_t kEchoBytes = 48;

struct EchoStream {
  std::shared_ptr<Channel> channel;
  std::shared_ptr<ClientStream> stream;
  std::atomic<size_t> unsaid = 0;
  bool begun = false;  // the answer to its first message has come
};

struct EchoLoop {
  std::atomic<uint64_t> ended = 0;
  std::atomic<bool> stopping = false;
  Mutex mutex;
  absl::Status error ABSL_GUARDED_BY(mutex);

  void Start(EchoStream& stream) {
    ++stream.unsaid;
    stream.stream->Poke();
  }
  void Ended(EchoStream& stream) {
    ++ended;
    if (!stopping) Start(stream);
  }
  void Failed(const absl::Status& status) {
    MutexLock lock(&mutex);
    if (!stopping) error.Update(status);
  }
};

}  // namespace

Measured MeasureEnds(const DirectOptions& options, const std::atomic<uint64_t>& ended) {
  absl::SleepFor(options.warm_up);
  Measured measured = {.begin_ns = NowNs()};
  const uint64_t before = ended.load();
  const double cpu_before = OwnCpuSeconds();
  absl::SleepFor(options.window);
  measured.end_ns = NowNs();
  measured.functions_per_second = static_cast<double>(ended.load() - before) / measured.seconds();
  measured.cpu_seconds = OwnCpuSeconds() - cpu_before;
  return measured;
}

absl::StatusOr<Measured> DriveEcho(const DirectOptions& options,
                                   const std::vector<std::string>& addresses) {
  EchoLoop loop;
  std::deque<EchoStream> streams(addresses.size());
  auto transport = NewGrpcTransport();
  for (size_t i = 0; i < streams.size(); ++i) {
    EchoStream& one = streams[i];
    one.channel = transport->Connect(addresses[i], pb::ROLE_WORKER);
    ++one.unsaid;  // a stream begins with a message, which the loop does not count
    one.stream =
        one.channel->Converse("/bench/Echo",
                              {[&one](Buffer* message) {
                                 const size_t count = one.unsaid.exchange(0);
                                 *message = Buffer(std::string(count * kEchoBytes, 'x'));
                                 return count > 0;
                               },
                               [&one, &loop](const Buffer& message) {
                                 for (size_t n = message.size() / kEchoBytes; n > 0; --n) {
                                   if (std::exchange(one.begun, true)) loop.Ended(one);
                                 }
                               }},
                              [&loop](const absl::Status& status) { loop.Failed(status); });
  }
  for (EchoStream& one : streams) {
    for (int i = 0; i < options.in_flight; ++i) loop.Start(one);
  }
  const Measured measured = MeasureEnds(options, loop.ended);
  loop.stopping = true;
  transport = nullptr;  // no callback comes later
  MutexLock lock(&loop.mutex);
  return loop.error.ok() ? absl::StatusOr<Measured>(measured) : loop.error;
}

}  // namespace mu::scale
