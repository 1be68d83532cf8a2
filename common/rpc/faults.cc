#include "common/rpc/faults.h"

#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/rpc/faulty_stream.h"
#include "common/rpc/timer_queue.h"

namespace mu {
namespace {

using UnaryDone = std::function<void(absl::Status, Buffer)>;

// A call that has not started yet, or never will.
class LateCall final : public ClientCall {
 public:
  void Cancel() override {
    std::shared_ptr<ClientCall> call;
    std::function<void()> give_up;
    {
      MutexLock lock(&mutex_);
      cancelled_ = true;
      call = call_;
      give_up.swap(give_up_);
    }
    if (call != nullptr) call->Cancel();
    // Never from within. (The caller, or LateCalls, keeps this object until it has run.)
    if (give_up) TimerQueue::Process().CallAfter(absl::ZeroDuration(), std::move(give_up));
  }
  // What ends the call if it is cancelled before it starts. False if it is cancelled already.
  bool Arm(std::function<void()> give_up) {
    MutexLock lock(&mutex_);
    if (cancelled_) return false;
    give_up_ = std::move(give_up);
    return true;
  }
  // True if the caller has not given up: then it never will by `give_up`.
  bool Disarm() {
    std::function<void()> dropped;
    MutexLock lock(&mutex_);
    dropped.swap(give_up_);
    return static_cast<bool>(dropped);
  }
  void Set(std::shared_ptr<ClientCall> call) {
    bool cancelled;
    {
      MutexLock lock(&mutex_);
      call_ = call;
      cancelled = cancelled_;
    }
    if (cancelled) call->Cancel();
  }

 private:
  Mutex mutex_;
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  std::shared_ptr<ClientCall> call_ ABSL_GUARDED_BY(mutex_);
  std::function<void()> give_up_ ABSL_GUARDED_BY(mutex_);
};

// The calls that have not started, and streams with faults, for the end of the transport.
class LateCalls {
 public:
  void Add(const std::shared_ptr<ClientCall>& call) {
    MutexLock lock(&mutex_);
    calls_.insert(call);
  }
  void Remove(const std::shared_ptr<ClientCall>& call) {
    MutexLock lock(&mutex_);
    calls_.erase(call);
    if (calls_.empty()) empty_.SignalAll();
  }
  void CancelAndWait() {
    std::vector<std::shared_ptr<ClientCall>> calls;
    {
      MutexLock lock(&mutex_);
      calls.assign(calls_.begin(), calls_.end());
    }
    for (const auto& call : calls) call->Cancel();
    MutexLock lock(&mutex_);
    while (!calls_.empty()) empty_.Wait(&mutex_);
  }

 private:
  Mutex mutex_;
  CondVar empty_;
  absl::flat_hash_set<std::shared_ptr<ClientCall>> calls_ ABSL_GUARDED_BY(mutex_);
};

class FaultyChannel final : public Channel {
 public:
  FaultyChannel(std::shared_ptr<Channel> inner, std::shared_ptr<FaultPlan> plan,
                std::shared_ptr<LateCalls> late)
      : inner_(std::move(inner)), plan_(std::move(plan)), late_(std::move(late)) {}

  std::shared_ptr<ClientCall> Unary(const std::string& method, Buffer request, CallOptions options,
                                    UnaryDone done) override {
    FaultRule rule;
    if (!plan_->Decide(method, &rule))
      return inner_->Unary(method, std::move(request), options, std::move(done));
    switch (rule.fault) {
      case Fault::kLoseRequest:
        return Lose(rule, method, options,
                    [done = std::move(done)](absl::Status status) { done(std::move(status), {}); });
      case Fault::kLoseReply:
        return inner_->Unary(
            method, std::move(request), options,
            [error = Lost(rule, method), done = std::move(done)](absl::Status status, Buffer) {
              // What the caller itself brought about it may hear.
              done(absl::IsCancelled(status) ? std::move(status) : error, {});
            });
      case Fault::kDuplicate:
        inner_->Unary(method, request, options, [](absl::Status, Buffer) {});
        return inner_->Unary(method, std::move(request), options, std::move(done));
      case Fault::kLateCopy:
        Delay(
            rule, [](absl::Status) {},
            [inner = inner_, method, request, options] {
              return inner->Unary(method, request, options, [](absl::Status, Buffer) {});
            });
        return inner_->Unary(method, std::move(request), options, std::move(done));
      case Fault::kDelay:
        break;
    }
    auto shared = std::make_shared<UnaryDone>(std::move(done));
    return Delay(
        rule, [shared](absl::Status status) { (*shared)(std::move(status), {}); },
        [inner = inner_, method, request = std::move(request), options, shared] {
          return inner->Unary(method, request, options, std::move(*shared));
        });
  }

  std::shared_ptr<ClientCall> ServerStream(const std::string& method, Buffer request,
                                           CallOptions options, std::function<void(Buffer)> message,
                                           std::function<void(absl::Status)> done) override {
    FaultRule rule;
    if (!plan_->Decide(method, &rule)) {
      return inner_->ServerStream(method, std::move(request), options, std::move(message),
                                  std::move(done));
    }
    switch (rule.fault) {
      case Fault::kLoseRequest:
        return Lose(rule, method, options, std::move(done));
      case Fault::kLoseReply:
        return inner_->ServerStream(
            method, std::move(request), options, [](Buffer) {},
            [error = Lost(rule, method), done = std::move(done)](absl::Status status) {
              done(absl::IsCancelled(status) ? std::move(status) : error);
            });
      case Fault::kDuplicate:
        inner_->ServerStream(
            method, request, options, [](Buffer) {}, [](absl::Status) {});
        return inner_->ServerStream(method, std::move(request), options, std::move(message),
                                    std::move(done));
      case Fault::kLateCopy:
        Delay(
            rule, [](absl::Status) {},
            [inner = inner_, method, request, options] {
              return inner->ServerStream(
                  method, request, options, [](Buffer) {}, [](absl::Status) {});
            });
        return inner_->ServerStream(method, std::move(request), options, std::move(message),
                                    std::move(done));
      case Fault::kDelay:
        break;
    }
    auto shared = std::make_shared<std::function<void(absl::Status)>>(std::move(done));
    return Delay(
        rule, [shared](absl::Status status) { (*shared)(std::move(status)); },
        [inner = inner_, method, request = std::move(request), options,
         message = std::move(message), shared] {
          return inner->ServerStream(method, request, options, message, std::move(*shared));
        });
  }

  std::shared_ptr<ClientStream> Converse(const std::string& method, Conversation conversation,
                                         std::function<void(absl::Status)> done) override {
    auto stream = std::make_shared<FaultyStream>(
        method, plan_, std::move(conversation), std::move(done),
        [late = late_](const std::shared_ptr<ClientCall>& ended) { late->Remove(ended); });
    late_->Add(stream);
    stream->Start(
        [inner = inner_, method](Conversation both, std::function<void(absl::Status)> end) {
          return inner->Converse(method, std::move(both), std::move(end));
        });
    return stream;
  }

 private:
  static absl::Status Lost(const FaultRule& rule, const std::string& method) {
    return absl::Status(rule.error, absl::StrCat("a fault of the test lost ", method));
  }

  // After `wait` the call starts by `start`, unless it was cancelled before; `end` ends one that
  // never starts.
  std::shared_ptr<ClientCall> After(absl::Duration wait, std::function<void(absl::Status)> end,
                                    std::function<void(std::shared_ptr<LateCall>)> start) {
    auto call = std::make_shared<LateCall>();
    late_->Add(call);
    call->Arm([end = std::move(end), late = late_, weak = std::weak_ptr<LateCall>(call)] {
      const std::shared_ptr<LateCall> cancelled = weak.lock();
      end(absl::CancelledError("cancelled before it left"));
      late->Remove(cancelled);
    });
    TimerQueue::Process().CallAfter(wait, [call, start = std::move(start), late = late_] {
      if (!call->Disarm()) return;
      start(call);
      late->Remove(call);
    });
    return call;
  }

  std::shared_ptr<ClientCall> Lose(const FaultRule& rule, const std::string& method,
                                   CallOptions options, std::function<void(absl::Status)> done) {
    const bool silent = rule.error == absl::StatusCode::kDeadlineExceeded;
    return After(silent ? options.timeout : absl::ZeroDuration(), done,
                 [done, error = Lost(rule, method)](std::shared_ptr<LateCall>) { done(error); });
  }

  std::shared_ptr<ClientCall> Delay(const FaultRule& rule, std::function<void(absl::Status)> end,
                                    std::function<std::shared_ptr<ClientCall>()> start) {
    return After(
        rule.delay, std::move(end),
        [start = std::move(start)](std::shared_ptr<LateCall> call) { call->Set(start()); });
  }

  const std::shared_ptr<Channel> inner_;
  const std::shared_ptr<FaultPlan> plan_;
  const std::shared_ptr<LateCalls> late_;
};

class FaultyTransport final : public Transport {
 public:
  FaultyTransport(std::shared_ptr<Transport> inner, std::shared_ptr<FaultPlan> plan)
      : inner_(std::move(inner)), plan_(std::move(plan)) {}
  ~FaultyTransport() override { late_->CancelAndWait(); }
  absl::StatusOr<std::unique_ptr<RpcServer>> Listen(const std::string& address,
                                                    MethodTable methods) override {
    return inner_->Listen(address, std::move(methods));
  }
  std::shared_ptr<Channel> Connect(const std::string& address, pb::Role callee) override {
    return std::make_shared<FaultyChannel>(inner_->Connect(address, callee), plan_, late_);
  }

 private:
  const std::shared_ptr<Transport> inner_;
  const std::shared_ptr<FaultPlan> plan_;
  const std::shared_ptr<LateCalls> late_ = std::make_shared<LateCalls>();
};

}  // namespace

void FaultPlan::Add(FaultRule rule) {
  MutexLock lock(&mutex_);
  rules_.push_back(std::move(rule));
}

void FaultPlan::Clear() {
  MutexLock lock(&mutex_);
  rules_.clear();
}

bool FaultPlan::Decide(const std::string& method, FaultRule* rule) {
  MutexLock lock(&mutex_);
  called_.insert(method);
  for (FaultRule& candidate : rules_) {
    if (candidate.times == 0 || !absl::EndsWith(method, candidate.method)) continue;
    if (random_.Unit() >= candidate.probability) continue;
    if (candidate.skip > 0) {
      --candidate.skip;
      continue;
    }
    if (candidate.times > 0) --candidate.times;
    ++hits_;
    *rule = candidate;
    return true;
  }
  return false;
}

int FaultPlan::hits() const {
  MutexLock lock(&mutex_);
  return hits_;
}

std::set<std::string> FaultPlan::called() const {
  MutexLock lock(&mutex_);
  return called_;
}

std::unique_ptr<Transport> NewFaultyTransport(std::shared_ptr<Transport> inner,
                                              std::shared_ptr<FaultPlan> plan) {
  return std::make_unique<FaultyTransport>(std::move(inner), std::move(plan));
}

}  // namespace mu
