#include "common/rpc/memory_network.h"

#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/rpc/refused.h"
#include "common/rpc/timer_queue.h"

namespace mu {

void MemoryServerState::Accept(std::shared_ptr<MemoryCall> call, Buffer request) {
  if (!call->Attach(shared_from_this())) return;  // cancelled on its way
  bool stopping;
  {
    MutexLock lock(&mutex_);
    stopping = stopping_;
    if (!stopping) {
      calls_.emplace(call.get(), call);
      ++running_;
    }
  }
  if (stopping) return call->Abort();
  const MethodTable::Method* method = methods_.Find(call->method());
  if (method == nullptr) {
    call->Answer(
        absl::UnimplementedError("there is no method " + call->method() + " at this address"));
    Leave();
  } else if (method->run_on == RunOn::kTransportThread) {
    Run(*method, std::move(call), std::move(request));
  } else {
    pool_.Post([this, method, call = std::move(call), request = std::move(request)]() mutable {
      Run(*method, std::move(call), std::move(request));
    });
  }
}

void MemoryServerState::Run(const MethodTable::Method& method, std::shared_ptr<MemoryCall> call,
                            Buffer request) {
  method.handler(NewMemoryHandle(call), std::move(request));
  if (method.converses) call->Listen();
  call = nullptr;
  request = Buffer();  // what the request holds is gone before Shutdown returns
  Leave();
}

bool MemoryServerState::Enter() {
  MutexLock lock(&mutex_);
  if (stopping_) return false;
  ++running_;
  return true;
}

void MemoryServerState::Leave() {
  MutexLock lock(&mutex_);
  --running_;
  changed_.SignalAll();
}

void MemoryServerState::Remove(MemoryCall* call) {
  std::shared_ptr<MemoryCall> last;  // destroyed without the lock
  MutexLock lock(&mutex_);
  const auto it = calls_.find(call);
  if (it == calls_.end()) return;
  last = std::move(it->second);
  calls_.erase(it);
}

void MemoryServerState::Shutdown() {
  std::vector<std::shared_ptr<MemoryCall>> calls;
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
    for (const auto& [key, call] : calls_) calls.push_back(call);
  }
  for (const auto& call : calls) call->Abort();
  MutexLock lock(&mutex_);
  while (running_ > 0) changed_.Wait(&mutex_);
}

absl::StatusOr<std::string> MemoryNetwork::Bind(const std::string& address,
                                                std::shared_ptr<MemoryServerState> server) {
  MutexLock lock(&mutex_);
  std::string bound = address;
  if (address.empty() || absl::EndsWith(address, ":0"))
    bound = absl::StrCat("memory:", next_port_++);
  if (!servers_.emplace(bound, std::move(server)).second) {
    return absl::UnavailableError(absl::StrCat(
        "cannot listen on ", bound, ": it is in use; choose another one (memory:0: any)"));
  }
  return bound;
}

void MemoryNetwork::Unbind(const std::string& address) {
  std::shared_ptr<MemoryServerState> last;
  MutexLock lock(&mutex_);
  const auto it = servers_.find(address);
  if (it == servers_.end()) return;
  last = std::move(it->second);
  servers_.erase(it);
}

uint64_t MemoryNetwork::EndAfter(const std::shared_ptr<MemoryCall>& call, absl::Duration timeout) {
  if (timeout == absl::InfiniteDuration()) return 0;
  return TimerQueue::Process().CallAfter(
      timeout, [weak = std::weak_ptr<MemoryCall>(call), timeout] {
        const std::shared_ptr<MemoryCall> late = weak.lock();
        if (late == nullptr) return;
        late->EndFromClient(absl::DeadlineExceededError(
            absl::StrCat(late->method(), " at ", late->address(), " did not answer within ",
                         absl::FormatDuration(timeout))));
      });
}

void MemoryNetwork::Start(std::shared_ptr<MemoryCall> call, Buffer request,
                          absl::Duration timeout) {
  bool closed;
  {
    // One step: the timer may go off at once, and the end of the call takes it out of active_.
    MutexLock lock(&mutex_);
    closed = closed_;
    active_.emplace(call.get(), Active{call, EndAfter(call, timeout)});
  }
  if (closed) return call->EndFromClient(absl::CancelledError("the transport is gone"));
  threads_.Post(
      [self = shared_from_this(), call = std::move(call), request = std::move(request)]() mutable {
        std::shared_ptr<MemoryServerState> server;
        {
          MutexLock lock(&self->mutex_);
          const auto it = self->servers_.find(call->address());
          if (it != self->servers_.end()) server = it->second;
        }
        if (server == nullptr) {
          call->EndFromClient(
              AsRefused(absl::UnavailableError("nobody listens at " + call->address())));
        } else {
          server->Accept(std::move(call), std::move(request));
        }
      });
}

void MemoryNetwork::Remove(MemoryCall* call) {
  std::shared_ptr<MemoryCall> last;  // destroyed without the lock
  uint64_t timer = 0;
  {
    MutexLock lock(&mutex_);
    const auto it = active_.find(call);
    last = std::move(it->second.call);
    timer = it->second.timer;
    active_.erase(it);
    if (active_.empty()) idle_.SignalAll();
  }
  if (timer != 0) TimerQueue::Process().Cancel(timer);
}

void MemoryNetwork::CancelIf(const Channel* channel, const char* why) {
  std::vector<std::shared_ptr<MemoryCall>> calls;
  {
    MutexLock lock(&mutex_);
    for (const auto& [key, active] : active_) {
      if (channel == nullptr || active.call->channel() == channel) calls.push_back(active.call);
    }
  }
  for (const auto& call : calls) call->EndFromClient(absl::CancelledError(why));
}

void MemoryNetwork::CancelCallsOf(const Channel* channel) {
  CancelIf(channel, "the channel is gone");
}

void MemoryNetwork::CloseAndWait() {
  {
    MutexLock lock(&mutex_);
    closed_ = true;
  }
  CancelIf(nullptr, "the transport is gone");
  MutexLock lock(&mutex_);
  while (!active_.empty()) idle_.Wait(&mutex_);
}

}  // namespace mu
