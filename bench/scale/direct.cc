#include "bench/scale/direct.h"

#include <atomic>
#include <functional>
#include <memory>
#include <utility>

#include "absl/time/clock.h"
#include "bench/process_times.h"
#include "common/base/mutex.h"
#include "common/graph/fingerprint.h"
#include "common/obs/telemetry.h"
#include "common/rpc/typed.h"
#include "proto/worker.pb.h"

namespace mu::scale {
namespace {

class DirectLoop {
 public:
  // The request of a call on a worker, and the number of the one before it there (0: none).
  using Request = std::function<Buffer(uint64_t number, uint64_t before)>;

  DirectLoop(Transport* transport, const DirectOptions& options, std::string method,
             Request request)
      : options_(options), method_(std::move(method)), request_(std::move(request)) {
    for (const std::string& address : options.addresses)
      workers_.emplace_back(transport->Connect(address, pb::ROLE_WORKER));
  }

  Channel& channel(size_t worker) { return *workers_[worker].channel; }

  absl::StatusOr<DirectResult> Run() {
    for (size_t worker = 0; worker < workers_.size(); ++worker) {
      for (int i = 0; i < options_.in_flight; ++i) Start(worker);
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
    while (open_ > 0) changed_.Wait(&mutex_);
    return error_.ok() ? absl::StatusOr<DirectResult>(result) : error_;
  }

 private:
  struct Worker {
    std::shared_ptr<Channel> channel;
    std::atomic<uint64_t> last = 0;
    explicit Worker(std::shared_ptr<Channel> c) : channel(std::move(c)) {}
    Worker(Worker&& other) noexcept : channel(std::move(other.channel)) {}
  };

  void Start(size_t index) {
    {
      MutexLock lock(&mutex_);
      ++open_;
    }
    Worker& worker = workers_[index];
    const uint64_t number = next_.fetch_add(1) + 1;
    const uint64_t before = worker.last.exchange(number);
    worker.channel->ServerStream(
        method_, request_(number, before), {.timeout = absl::InfiniteDuration()}, [](Buffer) {},
        [this, index](absl::Status status) {
          ++ended_;
          if (status.ok() && !stopping_) Start(index);
          MutexLock lock(&mutex_);
          error_.Update(status);
          if (--open_ == 0) changed_.SignalAll();
        });
  }

  const DirectOptions options_;
  const std::string method_;
  const Request request_;
  std::vector<Worker> workers_;
  std::atomic<uint64_t> next_ = 0, ended_ = 0;
  std::atomic<bool> stopping_ = false;
  Mutex mutex_;
  CondVar changed_;
  int open_ ABSL_GUARDED_BY(mutex_) = 0;
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
  const auto transport = NewGrpcTransport();
  // As large as a small RunRequest.
  const std::string bytes(48, 'x');
  DirectLoop loop(transport.get(), options, "/bench/Echo",
                  [&](uint64_t, uint64_t) { return Buffer(bytes); });
  return loop.Run();
}

absl::StatusOr<DirectResult> DriveWorkers(const DirectOptions& options,
                                          const pb::FunctionProto& function, uint32_t steps) {
  const auto transport = NewGrpcTransport();
  const Fingerprint fingerprint = FingerprintOf(function);
  const auto run = [&](uint64_t number, uint64_t before) {
    pb::RunRequest request;
    *request.mutable_context() = Context();
    request.set_function(number);
    request.set_fingerprint(fingerprint.value());
    request.set_steps(steps);
    request.set_run(number);
    request.set_after(before);
    return Buffer(request.SerializeAsString());
  };
  DirectLoop loop(transport.get(), options, "/muster.Worker/Run", run);
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
  return loop.Run();
}

}  // namespace mu::scale
