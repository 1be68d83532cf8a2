#include "bench/scale/direct.h"

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "bench/process_times.h"
#include "common/base/mutex.h"
#include "common/client/feed_client.h"
#include "common/graph/fingerprint.h"
#include "common/obs/telemetry.h"
#include "common/rpc/typed.h"
#include "proto/worker.pb.h"

namespace mu::scale {
namespace {

// A stream to each address, on which `in_flight` things are under way at any time.
class DirectLoop {
 public:
  DirectLoop(Transport* transport, const DirectOptions& options) : options_(options) {
    for (const std::string& address : options.addresses)
      channels_.push_back(transport->Connect(address, pb::ROLE_WORKER));
  }

  Channel& channel(size_t worker) { return *channels_[worker]; }
  std::shared_ptr<Channel> shared_channel(size_t worker) { return channels_[worker]; }

  // `start` begins one thing on this worker; its end is told by Ended.
  absl::StatusOr<DirectResult> Run(std::function<void(size_t worker)> start) {
    start_ = std::move(start);
    for (size_t worker = 0; worker < channels_.size(); ++worker) {
      for (int i = 0; i < options_.in_flight; ++i) start_(worker);
    }
    absl::SleepFor(options_.warm_up);
    DirectResult result = {.begin_ns = NowNs()};
    const uint64_t before = ended_.load();
    const double cpu_before = OwnCpuSeconds();
    absl::SleepFor(options_.window);
    result.end_ns = NowNs();
    result.calls_per_second = static_cast<double>(ended_.load() - before) /
                              (static_cast<double>(result.end_ns - result.begin_ns) * 1e-9);
    result.cpu_seconds = OwnCpuSeconds() - cpu_before;
    stopping_ = true;
    MutexLock lock(&mutex_);
    return error_.ok() ? absl::StatusOr<DirectResult>(result) : error_;
  }

  void Ended(size_t worker) {
    ++ended_;
    if (!stopping_) start_(worker);
  }
  void Failed(const absl::Status& status) {
    MutexLock lock(&mutex_);
    if (!stopping_) error_.Update(status);
  }

 private:
  const DirectOptions options_;
  std::vector<std::shared_ptr<Channel>> channels_;
  std::function<void(size_t)> start_;
  std::atomic<uint64_t> ended_ = 0;
  std::atomic<bool> stopping_ = false;
  Mutex mutex_;
  absl::Status error_ ABSL_GUARDED_BY(mutex_);
};

pb::RequestContext Context() {
  pb::RequestContext context;
  context.set_job(1);
  context.set_epoch(1);
  context.set_low_water(1);
  return context;
}

// Requests to all, a few at a time.
template <typename Reply, typename Request>
absl::Status CallEach(DirectLoop& loop, size_t workers, const char* method,
                      const Request& request) {
  constexpr size_t kAtATime = 16;
  for (size_t first = 0; first < workers; first += kAtATime) {
    const size_t count = std::min(kAtATime, workers - first);
    std::vector<Notification> done(count);
    std::vector<absl::Status> statuses(count);
    for (size_t i = 0; i < count; ++i) {
      CallAsync<Reply>(loop.channel(first + i), method, request, {},
                       [&, i](const absl::StatusOr<Reply>& reply) {
                         statuses[i] = reply.status();
                         done[i].Notify();
                       });
    }
    for (Notification& one : done) one.Wait();
    for (const absl::Status& status : statuses) MU_RETURN_IF_ERROR(status);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<DirectResult> DriveEcho(const DirectOptions& options) {
  // As large as a small RunRequest.
  constexpr size_t kBytes = 48;
  struct Stream {
    std::shared_ptr<ClientStream> stream;
    std::atomic<size_t> unsaid = 0;
    bool begun = false;  // the answer to its first message has come
  };
  std::deque<Stream> streams(options.addresses.size());
  auto transport = NewGrpcTransport();
  DirectLoop loop(transport.get(), options);
  for (size_t i = 0; i < streams.size(); ++i) {
    Stream& one = streams[i];
    ++one.unsaid;  // a stream begins with a message, which the loop does not count
    one.stream =
        loop.channel(i).Converse("/bench/Echo",
                                 {[&one](Buffer* message) {
                                    const size_t count = one.unsaid.exchange(0);
                                    *message = Buffer(std::string(count * kBytes, 'x'));
                                    return count > 0;
                                  },
                                  [&one, &loop, i](const Buffer& message) {
                                    for (size_t n = message.size() / kBytes; n > 0; --n) {
                                      if (std::exchange(one.begun, true)) loop.Ended(i);
                                    }
                                  }},
                                 [&loop](const absl::Status& status) { loop.Failed(status); });
  }
  auto result = loop.Run([&streams](size_t worker) {
    ++streams[worker].unsaid;
    streams[worker].stream->Poke();
  });
  transport = nullptr;  // no callback comes later
  return result;
}

absl::StatusOr<DirectResult> DriveWorkers(const DirectOptions& options,
                                          const pb::FunctionProto& function, uint32_t steps) {
  const Fingerprint fingerprint = FingerprintOf(function);
  std::vector<std::shared_ptr<FeedClient>> feeds(options.addresses.size());
  std::atomic<uint64_t> last_run = 0;
  auto transport = NewGrpcTransport();
  DirectLoop loop(transport.get(), options);
  pb::ConfigureWorkerRequest configure;
  *configure.mutable_context() = Context();
  configure.mutable_routing()->set_version(1);
  MU_RETURN_IF_ERROR(CallEach<pb::ConfigureWorkerReply>(loop, options.addresses.size(),
                                                        "/muster.Worker/Configure", configure));
  pb::InstallFunctionRequest install;
  *install.mutable_context() = Context();
  *install.mutable_function() = function;
  install.set_fingerprint(fingerprint.value());
  MU_RETURN_IF_ERROR(CallEach<pb::InstallFunctionReply>(loop, options.addresses.size(),
                                                        "/muster.Worker/InstallFunction", install));
  for (size_t i = 0; i < feeds.size(); ++i) {
    FeedClient::Options feed;
    feed.channel = loop.shared_channel(i);
    *feed.hello.mutable_context() = Context();
    feed.hello.set_stream(1);
    feed.on_reply = [&loop, i](const pb::FeedReply& reply) {
      for (const std::string& bytes : reply.replies()) {
        pb::RunReply run;
        if (!run.ParseFromString(bytes) || run.end().code() != 0)
          loop.Failed(absl::InternalError("a run failed"));
        if (run.has_end()) loop.Ended(i);
      }
    };
    feed.on_ended = [&loop](const absl::Status& status) { loop.Failed(status); };
    feeds[i] = FeedClient::Open(std::move(feed));
  }
  auto result = loop.Run([&](size_t worker) {
    pb::FeedRequest said;
    pb::RunRequest& request = *said.add_runs();
    const uint64_t number = ++last_run;
    *request.mutable_context() = Context();
    request.set_function(number);
    request.set_fingerprint(fingerprint.value());
    request.set_steps(steps);
    request.set_run(number);
    feeds[worker]->Send(said.ByteSizeLong(),
                        [said](std::string* message) { said.AppendToString(message); });
  });
  for (const auto& feed : feeds) feed->Close();
  transport = nullptr;  // no callback comes later
  return result;
}

}  // namespace mu::scale
