// Counters, timers and spans of one process (or, in tests and in-process clusters, of one role).
//
// Look a counter or timer up once by name and keep the pointer: it lives as long as the Telemetry.
// Those with a help text are metrics, too: "ps.pull" is the histogram muster_ps_pull_seconds, the
// counter "ps.pulled_rows" is muster_ps_pulled_rows_total (docs/metrics.md).
// An update is a relaxed atomic add. Spans are recorded only while tracing is on, into bounded
// memory; what does not fit is dropped and counted. Everything here is thread safe.
//
//   Timer* const pull_timer = telemetry.timer("ps.pull", "Pulls, from frame to frame");
//   { ScopedTimer timing(pull_timer); ... }
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "common/base/mutex.h"
#include "common/base/status.h"
#include "common/obs/metrics.h"
#include "proto/telemetry.pb.h"

namespace mu {

// Nanoseconds of a steady clock; comparable between the processes of one machine until it restarts.
uint64_t NowNs();

class Telemetry;

class Counter {
 public:
  explicit Counter(std::string name, std::string help = "", MetricLabels labels = {})
      : name_(std::move(name)), help_(std::move(help)), labels_(std::move(labels)) {}
  void Add(int64_t amount = 1) { value_.fetch_add(amount, std::memory_order_relaxed); }
  void Set(int64_t value) { value_.store(value, std::memory_order_relaxed); }
  int64_t value() const { return value_.load(std::memory_order_relaxed); }
  const std::string& name() const { return name_; }
  const std::string& help() const { return help_; }
  const MetricLabels& labels() const { return labels_; }

 private:
  const std::string name_;
  const std::string help_;
  const MetricLabels labels_;
  std::atomic<int64_t> value_{0};
};

class Timer {
 public:
  Timer(Telemetry* telemetry, std::string name, std::string help = "", MetricLabels labels = {})
      : telemetry_(telemetry),
        name_(std::move(name)),
        help_(std::move(help)),
        labels_(std::move(labels)) {}
  // Adds one interval, and a span of this name if tracing is on.
  void Record(uint64_t start_ns, uint64_t end_ns, absl::string_view detail = {});
  // The same without a span: of something that no thread is busy with.
  void Count(uint64_t start_ns, uint64_t end_ns);
  uint64_t count() const { return count_.load(std::memory_order_relaxed); }
  uint64_t total_ns() const { return total_ns_.load(std::memory_order_relaxed); }
  // How many intervals ended in each of the kLatencyBuckets.
  std::vector<uint64_t> buckets() const;
  const std::string& name() const { return name_; }
  const std::string& help() const { return help_; }
  const MetricLabels& labels() const { return labels_; }

 private:
  Telemetry* const telemetry_;
  const std::string name_;
  const std::string help_;
  const MetricLabels labels_;
  std::atomic<uint64_t> count_{0};
  std::atomic<uint64_t> total_ns_{0};
  std::atomic<uint64_t> buckets_[kLatencyBuckets] = {};
};

class Telemetry {
 public:
  Telemetry();
  ~Telemetry();
  Telemetry(const Telemetry&) = delete;
  Telemetry& operator=(const Telemetry&) = delete;

  // The process's own; never destroyed.
  static Telemetry& Process();

  // One for each name and labels; the first one's help is kept.
  Counter* counter(absl::string_view name, absl::string_view help = {}, MetricLabels labels = {});
  Timer* timer(absl::string_view name, absl::string_view help = {}, MetricLabels labels = {});

  void SetTracing(bool on) { tracing_.store(on, std::memory_order_relaxed); }
  bool tracing() const { return tracing_.load(std::memory_order_relaxed); }
  void AddSpan(absl::string_view name, uint64_t start_ns, uint64_t end_ns,
               absl::string_view detail = {});
  // Of something that no thread is busy with, a call under way, say: such spans may overlap in any
  // way.
  void AddAsyncSpan(absl::string_view name, uint64_t start_ns, uint64_t end_ns,
                    absl::string_view detail = {});

  // Everything without labels as a message, in order of names; `request` may turn tracing on or off
  // and take the spans out.
  pb::TelemetryReply ToReply(const pb::TelemetryRequest& request);
  // What has a help text, as metrics.
  void AddMetrics(MetricList* list) const;

 private:
  struct SpanShard;
  void Add(absl::string_view name, uint64_t start_ns, uint64_t end_ns, absl::string_view detail,
           bool async);
  static constexpr int kShards = 8;
  static constexpr size_t kSpansPerShard = 1 << 15;

  std::atomic<bool> tracing_{false};
  const std::unique_ptr<SpanShard[]> shards_;
  mutable Mutex mutex_;
  // By name and labels.
  absl::flat_hash_map<std::string, std::unique_ptr<Counter>> counters_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<std::string, std::unique_ptr<Timer>> timers_ ABSL_GUARDED_BY(mutex_);
};

// Times a scope. `timer` may be null: then it does nothing.
class ScopedTimer {
 public:
  explicit ScopedTimer(Timer* timer) : timer_(timer), start_ns_(timer == nullptr ? 0 : NowNs()) {}
  ~ScopedTimer() { Stop(); }
  ScopedTimer(const ScopedTimer&) = delete;
  ScopedTimer& operator=(const ScopedTimer&) = delete;
  // Ends the interval before the scope does.
  void Stop() {
    if (timer_ != nullptr) timer_->Record(start_ns_, NowNs());
    timer_ = nullptr;
  }

 private:
  Timer* timer_;
  const uint64_t start_ns_;
};

// A span of a scope that has no timer. Nothing while tracing is off.
class ScopedSpan {
 public:
  ScopedSpan(Telemetry* telemetry, absl::string_view name, std::string detail = "")
      : telemetry_(telemetry), name_(name), detail_(std::move(detail)), start_ns_(NowNs()) {}
  ~ScopedSpan() {
    if (telemetry_->tracing()) telemetry_->AddSpan(name_, start_ns_, NowNs(), detail_);
  }
  ScopedSpan(const ScopedSpan&) = delete;
  ScopedSpan& operator=(const ScopedSpan&) = delete;
  void set_detail(std::string detail) { detail_ = std::move(detail); }

 private:
  Telemetry* const telemetry_;
  const std::string name_;
  std::string detail_;
  const uint64_t start_ns_;
};

// Memory that this process holds in RAM, of /proc/self/statm; 0 if that cannot be read.
uint64_t ResidentBytes();

}  // namespace mu
