#include "common/rpc/faulty_stream.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/steady_now.h"
#include "common/rpc/feed_kinds.h"
#include "common/rpc/timer_queue.h"

namespace mu {

FaultyStream::FaultyStream(std::string method, std::shared_ptr<FaultPlan> plan,
                           Conversation conversation, std::function<void(absl::Status)> done,
                           std::function<void(const std::shared_ptr<ClientCall>&)> ended)
    : method_(std::move(method)),
      plan_(std::move(plan)),
      user_(std::move(conversation)),
      done_(std::move(done)),
      ended_(std::move(ended)) {}

void FaultyStream::Start(const Open& open) {
  FaultRule rule;
  // What opens a connection says nothing else.
  if (!plan_->Decide(method_, &rule) && !plan_->Decide(absl::StrCat(method_, "/Hello"), &rule))
    return OpenNow(open);
  Buffer first;
  if (rule.fault == Fault::kDuplicate || rule.fault == Fault::kLateCopy) {
    std::function<bool(Buffer*)> next;
    {
      MutexLock lock(&mutex_);
      next = user_.next;
    }
    (void)next(&first);
    MutexLock lock(&mutex_);
    first_ = first;
  }
  switch (rule.fault) {
    case Fault::kLoseRequest:
      Break(rule, method_);
      TimerQueue::Process().CallAfter(absl::ZeroDuration(), [self = shared_from_this()] {
        self->InnerDone(absl::CancelledError("never opened"));
      });
      return;
    case Fault::kLoseReply: {
      MutexLock lock(&mutex_);
      lose_first_reply_ = true;
      broken_ = absl::Status(rule.error, absl::StrCat("a fault of the test lost ", method_));
      break;
    }
    case Fault::kDuplicate:
      // The copy comes second: a callee that heard it first would refuse the other one, each time.
      OpenNow(open);
      return OpenCopy(open, first);
    case Fault::kLateCopy:
      TimerQueue::Process().CallAfter(
          rule.delay, [self = shared_from_this(), open, first] { self->OpenCopy(open, first); });
      break;
    case Fault::kDelay:
      TimerQueue::Process().CallAfter(rule.delay,
                                      [self = shared_from_this(), open] { self->OpenNow(open); });
      return;
  }
  OpenNow(open);
}

void FaultyStream::OpenNow(const Open& open) {
  bool cancelled;
  {
    MutexLock lock(&mutex_);
    cancelled = cancelled_;
  }
  if (cancelled) return InnerDone(absl::CancelledError("cancelled before it was opened"));
  const auto self = shared_from_this();
  auto inner = open({[self](Buffer* message) { return self->Next(message); },
                     [self](Buffer message) { self->Message(std::move(message)); }},
                    [self](absl::Status status) { self->InnerDone(std::move(status)); });
  {
    MutexLock lock(&mutex_);
    inner_ = inner;
    cancelled = cancelled_ || (!broken_.ok() && !lose_first_reply_);
  }
  cancelled ? inner->Cancel() : inner->Poke();
}

void FaultyStream::OpenCopy(const Open& open, const Buffer& first) {
  {
    MutexLock lock(&mutex_);
    if (over_.has_value()) return;  // its transport may be gone
  }
  auto said = std::make_shared<bool>(false);
  (void)open({[said, first](Buffer* message) {
                *message = first;
                return !std::exchange(*said, true);
              },
              [](Buffer) {}},
             [self = shared_from_this()](absl::Status) {});
}

bool FaultyStream::Decide(const Buffer& message, bool request, FaultRule* rule) {
  for (const std::string& kind : KindsOf(message, request)) {
    if (kind != "Hello" && plan_->Decide(absl::StrCat(method_, "/", kind), rule)) return true;
  }
  return false;
}

bool FaultyStream::Next(Buffer* message) {
  std::function<bool(Buffer*)> next;
  {
    MutexLock lock(&mutex_);
    if (over_.has_value() || (!broken_.ok() && !lose_first_reply_)) return false;
    if (first_.has_value()) {
      *message = *std::exchange(first_, std::nullopt);
      return true;
    }
    if (!out_.empty()) {
      if (out_.front().due > SteadyNow()) return false;
      *message = std::move(out_.front().message);
      out_.pop_front();
      return true;
    }
    next = user_.next;
  }
  if (!next(message)) return false;
  FaultRule rule;
  if (!Decide(*message, /*request=*/true, &rule)) return true;
  switch (rule.fault) {
    case Fault::kLoseRequest:
    case Fault::kLoseReply:
      Break(rule, "a message");
      return false;
    case Fault::kDuplicate: {
      MutexLock lock(&mutex_);
      out_.push_back({*message, SteadyNow()});
      return true;
    }
    case Fault::kLateCopy:
      TimerQueue::Process().CallAfter(rule.delay, [self = shared_from_this(), copy = *message] {
        {
          MutexLock lock(&self->mutex_);
          self->out_.push_back({copy, SteadyNow()});
        }
        self->Poke();
      });
      return true;
    case Fault::kDelay: {
      MutexLock lock(&mutex_);
      out_.push_front({std::move(*message), SteadyNow() + rule.delay});
      break;
    }
  }
  After(rule.delay, &FaultyStream::Poke);
  return false;
}

void FaultyStream::Message(Buffer message) {
  FaultRule rule;
  const bool hit = Decide(message, /*request=*/false, &rule);
  {
    MutexLock lock(&mutex_);
    if (!broken_.ok() && !lose_first_reply_) return;
  }
  bool lose;
  {
    MutexLock lock(&mutex_);
    lose = std::exchange(lose_first_reply_, false);
    if (lose && inner_ != nullptr) inner_->Cancel();
  }
  if (lose) return;
  if (hit && (rule.fault == Fault::kLoseRequest || rule.fault == Fault::kLoseReply))
    return Break(rule, "a message");
  {
    MutexLock lock(&mutex_);
    const bool late = hit && rule.fault == Fault::kDelay;
    in_.push_back({message, late ? SteadyNow() + rule.delay : SteadyNow()});
    if (hit && rule.fault == Fault::kDuplicate) in_.push_back({message, SteadyNow()});
  }
  if (hit && rule.fault == Fault::kLateCopy) {
    TimerQueue::Process().CallAfter(rule.delay, [self = shared_from_this(), message] {
      {
        MutexLock lock(&self->mutex_);
        self->in_.push_back({message, SteadyNow()});
      }
      self->Deliver();
    });
  }
  Deliver();
}

void FaultyStream::Deliver() {
  while (true) {
    std::function<void(Buffer)> take;
    std::function<void(absl::Status)> done;
    std::function<void(const std::shared_ptr<ClientCall>&)> ended;
    Buffer message;
    absl::Status status;
    absl::Duration wait;
    {
      MutexLock lock(&mutex_);
      if (delivering_) return;
      if (over_.has_value()) {
        // What is still on its way is lost with the connection.
        done.swap(done_);
        ended.swap(ended_);
        in_.clear();
        if (done == nullptr) return;
        // What the caller itself brought about it may hear.
        status = broken_.ok() || cancelled_ ? *over_ : broken_;
        delivering_ = true;  // for good
      } else if (in_.empty()) {
        return;
      } else if (wait = in_.front().due - SteadyNow(); wait <= absl::ZeroDuration()) {
        delivering_ = true;
        message = std::move(in_.front().message);
        in_.pop_front();
        take = user_.message;
      }
    }
    if (done != nullptr) {
      std::exchange(done, nullptr)(std::move(status));
      {
        Conversation last;  // destroyed without the lock
        MutexLock lock(&mutex_);
        std::swap(last, user_);
      }
      return ended(shared_from_this());
    }
    if (take == nullptr) return After(wait, &FaultyStream::Deliver);
    take(std::move(message));
    take = nullptr;
    MutexLock lock(&mutex_);
    delivering_ = false;
  }
}

void FaultyStream::InnerDone(absl::Status status) {
  {
    MutexLock lock(&mutex_);
    over_ = std::move(status);
    inner_ = nullptr;
  }
  Deliver();
}

void FaultyStream::Break(const FaultRule& rule, const std::string& what) {
  std::shared_ptr<ClientStream> inner;
  {
    MutexLock lock(&mutex_);
    if (broken_.ok())
      broken_ = absl::Status(rule.error, absl::StrCat("a fault of the test lost ", what));
    inner = inner_;
  }
  if (inner != nullptr) inner->Cancel();
}

void FaultyStream::After(absl::Duration delay, void (FaultyStream::*then)()) {
  TimerQueue::Process().CallAfter(delay, [weak = weak_from_this(), then] {
    if (const auto self = weak.lock()) (self.get()->*then)();
  });
}

void FaultyStream::Poke() {
  std::shared_ptr<ClientStream> inner;
  {
    MutexLock lock(&mutex_);
    inner = inner_;
  }
  if (inner != nullptr) inner->Poke();
}

void FaultyStream::Cancel() {
  std::shared_ptr<ClientStream> inner;
  {
    MutexLock lock(&mutex_);
    cancelled_ = true;
    inner = inner_;
  }
  if (inner != nullptr) inner->Cancel();
}

}  // namespace mu
