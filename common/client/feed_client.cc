#include "common/client/feed_client.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/error_kind.h"
#include "common/base/steady_now.h"
#include "common/rpc/timer_queue.h"

namespace mu {
namespace {

constexpr char kMethod[] = "/muster.Worker/Feed";
constexpr absl::Duration kFarewell = absl::Milliseconds(500);

}  // namespace

FeedClient::FeedClient(Options options)
    : options_(std::move(options)),
      end_(options_.stream),
      retries_({.give_up = options_.give_up}, SteadyNow()) {}

std::shared_ptr<FeedClient> FeedClient::Open(Options options) {
  std::shared_ptr<FeedClient> client(new FeedClient(std::move(options)));
  client->Connect();
  return client;
}

template <typename F>
void FeedClient::After(absl::Duration delay, F then) {
  TimerQueue::Process().CallAfter(delay, [weak = weak_from_this(), then = std::move(then)] {
    if (const auto self = weak.lock()) then(*self);
  });
}

void FeedClient::Connect() {
  uint64_t number;
  muster::FeedRequest first;
  {
    MutexLock lock(&mutex_);
    if (ended_ || closing_ || !why_.ok()) return;
    number = connection_.number + 1;
    connection_ = {.number = number, .open = true};
    *first.mutable_hello() = options_.hello;
    first.mutable_hello()->set_connection(number);
    first.set_received(end_.received());
    end_.Connect(number, first.SerializeAsString(), /*greets=*/false);
    if (retries_.Connected()) CountSoon();
  }
  const auto self = shared_from_this();
  std::shared_ptr<ClientStream> stream = options_.channel->Converse(
      kMethod,
      {[self, number](Buffer* message) { return self->end_.Next(number, message); },
       [self, number](const Buffer& bytes) { self->OnMessage(number, bytes); }},
      [self](absl::Status status) { self->OnDone(std::move(status)); });
  bool over;
  {
    MutexLock lock(&mutex_);
    if (connection_.number != number || !connection_.open) return;
    connection_.stream = stream;
    over = connection_.broken;
  }
  over ? stream->Cancel() : stream->Poke();
}

void FeedClient::OnMessage(uint64_t connection, const Buffer& bytes) {
  muster::FeedReply reply;
  const bool parsed = reply.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()));
  const auto verdict =
      parsed ? end_.Receive(connection, reply.number(), reply.received(), bytes.size())
             : absl::DataLossError("bytes that are no FeedReply");
  {
    MutexLock lock(&mutex_);
    if (!why_.ok() || closing_) return;
    if (!verdict.ok()) why_ = absl::DataLossError(verdict.status().message());
    retries_.Answered(verdict.ok() && *verdict == ResumableEnd::Verdict::kHandle);
  }
  if (!verdict.ok() || *verdict == ResumableEnd::Verdict::kBroken) return Break();
  if (*verdict == ResumableEnd::Verdict::kHandle) options_.on_reply(reply);
  if (end_.wants_to_write()) PokeSoon();
}

void FeedClient::OnDone(absl::Status status) {
  std::optional<absl::Duration> delay;
  bool breaks;
  {
    MutexLock lock(&mutex_);
    connection_.stream = nullptr;
    delay = retries_.Broken(status, SteadyNow());
    breaks = !closing_ && why_.ok() && delay.has_value();
    if (!breaks && why_.ok())
      why_ = status.ok() ? absl::InternalError("the worker ends the stream") : status;
  }
  // The connection counts as open until this has returned, so that nothing is told meanwhile.
  if (breaks && options_.on_broken != nullptr) options_.on_broken(status);
  {
    MutexLock lock(&mutex_);
    connection_.open = false;
    connection_.stream = nullptr;
    if (!closing_ && why_.ok()) {
      return After(delay.value_or(absl::ZeroDuration()), [](FeedClient& self) { self.Connect(); });
    }
    ended_ = true;
    status = closing_ ? absl::OkStatus() : why_;
  }
  options_.on_ended(status);
}

void FeedClient::CountSoon() {
  After(retries_.count_interval(), [](FeedClient& self) { self.CountSilence(); });
}

void FeedClient::CountSilence() {
  absl::Status why;
  {
    MutexLock lock(&mutex_);
    if (ended_ || !why_.ok()) return;
    const FeedRetries::Silence silence = retries_.CountSilence(SteadyNow());
    if (silence == FeedRetries::Silence::kOver) return;
    if (silence == FeedRetries::Silence::kGoesOn) return CountSoon();
    why_ = absl::UnavailableError(absl::StrCat("the stream to the worker could not be opened for ",
                                               absl::FormatDuration(options_.give_up)));
    // The connection's OnDone tells it, if it is to come.
    if (!connection_.open) {
      ended_ = true;
      why = why_;
    }
  }
  why.ok() ? Break() : options_.on_ended(why);
}

void FeedClient::Send(size_t bytes, ResumableEnd::Part append) {
  {
    MutexLock lock(&mutex_);
    if (ended_ || closing_) return;
  }
  end_.Add(bytes, std::move(append));
  PokeSoon();
}

void FeedClient::PokeSoon() {
  if (options_.writer == nullptr) return Poke();
  {
    MutexLock lock(&mutex_);
    if (std::exchange(poke_coming_, true)) return;
  }
  options_.writer([weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->Poke();
  });
}

void FeedClient::Poke() {
  std::shared_ptr<ClientStream> stream;
  {
    MutexLock lock(&mutex_);
    poke_coming_ = false;
    stream = connection_.stream;
  }
  if (stream != nullptr) stream->Poke();
}

void FeedClient::Close() {
  bool open;
  {
    MutexLock lock(&mutex_);
    if (ended_ || closing_) return;
    closing_ = true;
    open = connection_.open;
    ended_ = !open;
  }
  if (!open) {
    TimerQueue::Process().CallAfter(absl::ZeroDuration(), [self = shared_from_this()] {
      self->options_.on_ended(absl::OkStatus());
    });
    return;
  }
  end_.Add(2, [](std::string* message) {
    muster::FeedRequest last;
    last.set_last(true);
    last.AppendToString(message);
  });
  PokeSoon();
  After(kFarewell, [](FeedClient& self) { self.Break(); });
}

void FeedClient::Break() {
  std::shared_ptr<ClientStream> stream;
  {
    MutexLock lock(&mutex_);
    connection_.broken = true;
    stream = connection_.stream;
  }
  if (stream != nullptr) stream->Cancel();
}

}  // namespace mu
