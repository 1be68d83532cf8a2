#include "common/rpc/retry.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/mutex.h"
#include "common/base/status.h"
#include "common/base/steady_now.h"
#include "common/rpc/timer_queue.h"

namespace mu {
namespace {

uint64_t SeedOf(const RetryOptions& options) {
  static std::atomic<uint64_t> calls{0};
  if (options.seed != 0) return options.seed;
  return HashCombine(static_cast<uint64_t>(absl::GetCurrentTimeNanos()), calls.fetch_add(1));
}

class RetryingCall final : public ClientCall, public std::enable_shared_from_this<RetryingCall> {
 public:
  RetryingCall(std::shared_ptr<Channel> channel, std::string method, Buffer request,
               RetryOptions options, std::function<void(absl::Status, Buffer)> done)
      : channel_(std::move(channel)),
        method_(std::move(method)),
        request_(std::move(request)),
        options_(std::move(options)),
        deadline_(SteadyNow() + options_.timeout),
        done_(std::move(done)),
        backoff_(options_.first_delay, options_.longest_delay, SeedOf(options_)) {}

  void Try() {
    const absl::Duration left = std::max(deadline_ - SteadyNow(), absl::ZeroDuration());
    int number;
    {
      MutexLock lock(&mutex_);
      number = ++attempts_;
    }
    // A copy of the request shares its bytes.
    auto attempt =
        channel_->Unary(method_, request_, {.timeout = std::min(left, options_.attempt_timeout)},
                        [self = shared_from_this()](absl::Status status, Buffer reply) {
                          self->Ended(std::move(status), std::move(reply));
                        });
    bool cancelled;
    {
      MutexLock lock(&mutex_);
      cancelled = cancelled_;
      if (number == attempts_) attempt_ = attempt;  // it may have ended, and the next one begun
    }
    if (cancelled) attempt->Cancel();
  }

  void Cancel() override {
    std::shared_ptr<ClientCall> attempt;
    {
      MutexLock lock(&mutex_);
      cancelled_ = true;
      attempt = attempt_;
      // Waiting for the next attempt: it begins at once, and ends at once.
      if (timer_ != 0 && TimerQueue::Process().Cancel(timer_)) {
        TimerQueue::Process().CallAfter(absl::ZeroDuration(),
                                        [self = shared_from_this()] { self->EndCancelled(); });
      }
      timer_ = 0;
    }
    if (attempt != nullptr) attempt->Cancel();
  }

 private:
  void EndCancelled() { End(absl::CancelledError("the caller cancelled " + method_), {}); }

  void Ended(absl::Status status, Buffer reply) {
    {
      MutexLock lock(&mutex_);
      const absl::Duration delay = backoff_.Next();
      const bool again = !status.ok() && !cancelled_ && options_.retryable(status) &&
                         SteadyNow() + delay < deadline_;
      if (again) {
        timer_ = TimerQueue::Process().CallAfter(delay, [self = shared_from_this()] {
          {
            MutexLock lock(&self->mutex_);
            self->timer_ = 0;
          }
          self->Try();
        });
        return;
      }
      if (!status.ok() && attempts_ > 1) {
        status = Annotate(status, absl::StrCat(method_, " was tried ", attempts_, " times"));
      }
    }
    End(std::move(status), std::move(reply));
  }

  void End(absl::Status status, Buffer reply) {
    const auto done = std::move(done_);
    done_ = nullptr;
    done(std::move(status), std::move(reply));
  }

  const std::shared_ptr<Channel> channel_;
  const std::string method_;
  const Buffer request_;
  const RetryOptions options_;
  const absl::Time deadline_;
  std::function<void(absl::Status, Buffer)> done_;  // by the one thread that ends the call

  Mutex mutex_;
  Backoff backoff_ ABSL_GUARDED_BY(mutex_);
  int attempts_ ABSL_GUARDED_BY(mutex_) = 0;
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  uint64_t timer_ ABSL_GUARDED_BY(mutex_) = 0;  // of the next attempt
  std::shared_ptr<ClientCall> attempt_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

bool IsRetryable(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status);
}

std::shared_ptr<ClientCall> UnaryWithRetries(std::shared_ptr<Channel> channel,
                                             const std::string& method, Buffer request,
                                             RetryOptions options,
                                             std::function<void(absl::Status, Buffer)> done) {
  auto call = std::make_shared<RetryingCall>(std::move(channel), method, std::move(request),
                                             std::move(options), std::move(done));
  call->Try();
  return call;
}

}  // namespace mu
