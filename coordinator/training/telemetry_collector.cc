#include "coordinator/training/telemetry_collector.h"

#include <algorithm>
#include <iterator>
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/obs/log.h"
#include "common/obs/telemetry.h"
#include "common/rpc/typed.h"

namespace mu {
namespace {

// With spans, of which a process holds a bounded number, and without.
constexpr absl::Duration kTraceInterval = absl::Seconds(1);
constexpr absl::Duration kTimersInterval = absl::Seconds(2);
constexpr absl::Duration kTimeout = absl::Seconds(2);
// Processes that are asked at the same time. One that hangs holds the others up for the timeout at
// most.
constexpr size_t kAtOnce = 32;
// That no longer answer: one that comes back after so many others were lost would count twice.
constexpr size_t kMostGone = 256;

void AddTo(std::map<std::string, PartTime>* sums, const std::map<std::string, PartTime>& timers) {
  for (const auto& [name, time] : timers) {
    PartTime& sum = (*sums)[name];
    sum.seconds += time.seconds;
    sum.count += time.count;
  }
}

}  // namespace

TelemetryCollector::TelemetryCollector(Coordinator* coordinator, bool trace)
    : coordinator_(coordinator), trace_(trace) {
  if (trace_) Telemetry::Process().SetTracing(true);
  thread_ = std::thread([this] { Run(); });
}

void TelemetryCollector::Run() {
  while (true) {
    Poll(/*last=*/false);
    MutexLock lock(&mutex_);
    if (!stopping_) changed_.WaitFor(&mutex_, trace_ ? kTraceInterval : kTimersInterval);
    if (stopping_) return;
  }
}

TelemetryCollector::~TelemetryCollector() { EndThread(); }

void TelemetryCollector::EndThread() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
    changed_.SignalAll();
  }
  if (thread_.joinable()) thread_.join();
}

void TelemetryCollector::Stop() {
  EndThread();
  Poll(/*last=*/true);
}

void TelemetryCollector::Store(const std::string& key, const std::string& name,
                               pb::TelemetryReply reply, uint64_t asked_ns, uint64_t answered_ns) {
  MutexLock lock(&mutex_);
  Process& process = processes_[key];
  process.name = name;
  process.answered = polls_;
  process.dropped_spans = reply.dropped_spans();
  for (const auto& timer : reply.timers()) {
    process.timers[timer.name()] = {static_cast<double>(timer.total_ns()) * 1e-9, timer.count()};
  }
  if (!trace_) return;
  process.clock.Add(asked_ns, answered_ns, reply.now_ns());
  auto* const spans = reply.mutable_spans();
  if (spans->empty()) return;
  process.spans.push_back(
      {process.clock.size() - 1,
       {std::make_move_iterator(spans->begin()), std::make_move_iterator(spans->end())}});
}

void TelemetryCollector::Poll(bool last) {
  pb::TelemetryRequest request;
  request.set_trace(trace_);
  struct Target {
    std::string key, name, method;
    std::shared_ptr<Channel> channel;
  };
  {
    MutexLock lock(&mutex_);
    ++polls_;
  }
  std::vector<Target> targets;
  for (const auto& worker : coordinator_->runtime().Workers()) {
    targets.push_back({absl::StrCat("worker/", worker->member.incarnation.value()),
                       absl::StrCat("worker ", worker->id.value()), "/muster.Worker/GetTelemetry",
                       worker->channel});
  }
  for (const Member& server : coordinator_->runtime().Servers()) {
    targets.push_back({absl::StrCat("psserver/", server.incarnation.value()),
                       absl::StrCat("psserver ", server.index), "/muster.PsServer/GetTelemetry",
                       coordinator_->runtime().ChannelTo(server.address)});
  }
  struct Asked {
    const uint64_t asked_ns = NowNs();
    uint64_t answered_ns = 0;
    absl::StatusOr<pb::TelemetryReply> reply;
    Notification done;
  };
  // An answer without spans is quick: it tells the clock best.
  for (const bool drain : {trace_, false}) {
    request.set_drain_spans(drain);
    std::vector<Target> answered;
    for (size_t begin = 0; begin < targets.size(); begin += kAtOnce) {
      if (MutexLock lock(&mutex_); stopping_ && !last) return;
      const size_t end = std::min(targets.size(), begin + kAtOnce);
      std::vector<std::shared_ptr<Asked>> calls;
      for (size_t i = begin; i < end; ++i) {
        const auto call = calls.emplace_back(std::make_shared<Asked>());
        CallAsync<pb::TelemetryReply>(*targets[i].channel, targets[i].method, request,
                                      {.timeout = kTimeout},
                                      [call](absl::StatusOr<pb::TelemetryReply> reply) {
                                        call->answered_ns = NowNs();
                                        call->reply = std::move(reply);
                                        call->done.Notify();
                                      });
      }
      for (size_t i = begin; i < end; ++i) {
        Asked& call = *calls[i - begin];
        call.done.Wait();
        const Target& target = targets[i];
        if (call.reply.ok()) {
          Store(target.key, target.name, *std::move(call.reply), call.asked_ns, call.answered_ns);
          answered.push_back(target);
        } else {
          MU_LOG(DEBUG, "telemetry of {}: {}", target.name, call.reply.status());
        }
      }
    }
    if (!drain) break;
    targets = std::move(answered);
  }
  request.set_drain_spans(trace_);
  pb::TelemetryReply own = Telemetry::Process().ToReply(request);
  const uint64_t now = own.now_ns();  // our clock is not off, whatever the spans took to gather
  Store("coordinator", "coordinator", std::move(own), now, now);
  if (!trace_) ForgetOldest();  // a trace shows each
}

void TelemetryCollector::ForgetOldest() {
  MutexLock lock(&mutex_);
  size_t count = 0;
  for (const auto& [key, process] : processes_) count += process.answered < polls_ ? 1 : 0;
  for (; count > kMostGone; --count) {
    const auto oldest = std::min_element(
        processes_.begin(), processes_.end(),
        [](const auto& a, const auto& b) { return a.second.answered < b.second.answered; });
    AddTo(&forgotten_, oldest->second.timers);
    processes_.erase(oldest);
  }
}

std::map<std::string, PartTime> TelemetryCollector::TimeByPart() const {
  MutexLock lock(&mutex_);
  std::map<std::string, PartTime> sums = forgotten_;
  for (const auto& [key, process] : processes_) AddTo(&sums, process.timers);
  return sums;
}

absl::Status TelemetryCollector::WriteTrace(const std::string& path) const {
  std::vector<ProcessSpans> spans;
  {
    MutexLock lock(&mutex_);
    for (const auto& [key, process] : processes_) {
      ProcessSpans& all = spans.emplace_back();
      all.name = process.name;
      all.dropped_spans = process.dropped_spans;
      for (const auto& [sample, some] : process.spans) {
        const int64_t offset = process.clock.OffsetAt(sample);
        for (const pb::SpanProto& span : some) {
          all.spans.push_back(span);
          all.spans.back().set_start_ns(
              static_cast<uint64_t>(static_cast<int64_t>(span.start_ns()) + offset));
        }
      }
    }
  }
  return WriteChromeTrace(path, spans);
}

}  // namespace mu
