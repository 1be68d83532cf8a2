#include "common/obs/telemetry.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace mu {
namespace {

// Threads are numbered from 1 in the order of their first span or timer: short, and stable within
// the process.
uint32_t ThreadNumber() {
  static std::atomic<uint32_t> next{1};
  thread_local const uint32_t number = next.fetch_add(1, std::memory_order_relaxed);
  return number;
}

template <typename Map, typename Make>
auto* FindOrMake(Map& map, absl::string_view name, const MetricLabels& labels, Make make) {
  std::string key(name);
  for (const auto& [label, value] : labels) absl::StrAppend(&key, "{", label, "=", value, "}");
  const auto it = map.find(key);
  if (it != map.end()) return it->second.get();
  return map.emplace(std::move(key), make()).first->second.get();
}

// "muster_ps_pull_seconds" of "ps.pull" and "_seconds".
std::string MetricName(const std::string& name, const char* unit) {
  return absl::StrCat("muster_", absl::StrReplaceAll(name, {{".", "_"}}), unit);
}

template <typename Map>
auto SortedByName(const Map& map) {
  std::vector<decltype(map.begin()->second.get())> all;
  for (const auto& [name, value] : map) all.push_back(value.get());
  std::sort(all.begin(), all.end(), [](const auto* a, const auto* b) {
    return std::tie(a->name(), a->labels()) < std::tie(b->name(), b->labels());
  });
  return all;
}

}  // namespace

uint64_t NowNs() {
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                   std::chrono::steady_clock::now().time_since_epoch())
                                   .count());
}

void Timer::Record(uint64_t start_ns, uint64_t end_ns, absl::string_view detail) {
  Count(start_ns, end_ns);
  if (telemetry_->tracing()) telemetry_->AddSpan(name_, start_ns, end_ns, detail);
}

void Timer::Count(uint64_t start_ns, uint64_t end_ns) {
  const uint64_t taken_ns = end_ns > start_ns ? end_ns - start_ns : 0;
  count_.fetch_add(1, std::memory_order_relaxed);
  total_ns_.fetch_add(taken_ns, std::memory_order_relaxed);
  const auto bucket = std::lower_bound(std::begin(kLatencyBounds), std::end(kLatencyBounds),
                                       static_cast<double>(taken_ns) * 1e-9);
  buckets_[bucket - std::begin(kLatencyBounds)].fetch_add(1, std::memory_order_relaxed);
}

std::vector<uint64_t> Timer::buckets() const {
  std::vector<uint64_t> counts;
  for (const auto& bucket : buckets_) counts.push_back(bucket.load(std::memory_order_relaxed));
  return counts;
}

// Threads are spread over the shards, so that they seldom meet at a lock.
struct Telemetry::SpanShard {
  Mutex mutex;
  std::vector<pb::SpanProto> spans ABSL_GUARDED_BY(mutex);
  uint64_t dropped ABSL_GUARDED_BY(mutex) = 0;
};

Telemetry::Telemetry() : shards_(new SpanShard[kShards]) {}
Telemetry::~Telemetry() = default;

Telemetry& Telemetry::Process() {
  static Telemetry* telemetry = new Telemetry;
  return *telemetry;
}

Counter* Telemetry::counter(absl::string_view name, absl::string_view help, MetricLabels labels) {
  MutexLock lock(&mutex_);
  return FindOrMake(counters_, name, labels, [&] {
    return std::make_unique<Counter>(std::string(name), std::string(help), labels);
  });
}

Timer* Telemetry::timer(absl::string_view name, absl::string_view help, MetricLabels labels) {
  MutexLock lock(&mutex_);
  return FindOrMake(timers_, name, labels, [&] {
    return std::make_unique<Timer>(this, std::string(name), std::string(help), labels);
  });
}

void Telemetry::AddMetrics(MetricList* list) const {
  MutexLock lock(&mutex_);
  for (const Counter* counter : SortedByName(counters_)) {
    if (counter->help().empty()) continue;
    list->Counter(MetricName(counter->name(), "_total"), counter->help(),
                  static_cast<double>(counter->value()), counter->labels());
  }
  for (const Timer* timer : SortedByName(timers_)) {
    if (timer->help().empty()) continue;
    list->Histogram(MetricName(timer->name(), "_seconds"), timer->help(),
                    static_cast<double>(timer->total_ns()) * 1e-9, timer->buckets(),
                    timer->labels());
  }
}

void Telemetry::AddSpan(absl::string_view name, uint64_t start_ns, uint64_t end_ns,
                        absl::string_view detail) {
  Add(name, start_ns, end_ns, detail, /*async=*/false);
}

void Telemetry::AddAsyncSpan(absl::string_view name, uint64_t start_ns, uint64_t end_ns,
                             absl::string_view detail) {
  Add(name, start_ns, end_ns, detail, /*async=*/true);
}

void Telemetry::Add(absl::string_view name, uint64_t start_ns, uint64_t end_ns,
                    absl::string_view detail, bool async) {
  const uint32_t thread = ThreadNumber();
  SpanShard& shard = shards_[thread % kShards];
  MutexLock lock(&shard.mutex);
  if (shard.spans.size() >= kSpansPerShard) {
    ++shard.dropped;
    return;
  }
  pb::SpanProto& span = shard.spans.emplace_back();
  span.set_name(name.data(), name.size());
  span.set_start_ns(start_ns);
  span.set_duration_ns(end_ns > start_ns ? end_ns - start_ns : 0);
  span.set_thread(async ? 0 : thread);
  if (!detail.empty()) span.set_detail(detail.data(), detail.size());
}

pb::TelemetryReply Telemetry::ToReply(const pb::TelemetryRequest& request) {
  if (request.has_trace()) SetTracing(request.trace());
  pb::TelemetryReply reply;
  {
    MutexLock lock(&mutex_);
    for (const Counter* counter : SortedByName(counters_)) {
      if (!counter->labels().empty()) continue;
      pb::CounterProto* proto = reply.add_counters();
      proto->set_name(counter->name());
      proto->set_value(counter->value());
    }
    for (const Timer* timer : SortedByName(timers_)) {
      if (!timer->labels().empty()) continue;
      pb::TimerProto* proto = reply.add_timers();
      proto->set_name(timer->name());
      proto->set_count(timer->count());
      proto->set_total_ns(timer->total_ns());
    }
  }
  uint64_t dropped = 0;
  for (int i = 0; i < kShards; ++i) {
    MutexLock lock(&shards_[i].mutex);
    dropped += shards_[i].dropped;
    if (!request.drain_spans()) continue;
    for (pb::SpanProto& span : shards_[i].spans) reply.add_spans()->Swap(&span);
    shards_[i].spans.clear();
  }
  reply.set_dropped_spans(dropped);
  reply.set_resident_bytes(ResidentBytes());
  reply.set_now_ns(NowNs());
  return reply;
}

uint64_t ResidentBytes() {
  std::FILE* file = std::fopen("/proc/self/statm", "re");
  if (file == nullptr) return 0;
  unsigned long long total = 0;
  unsigned long long resident = 0;
  const int fields = std::fscanf(file, "%llu %llu", &total, &resident);
  std::fclose(file);
  return fields == 2 ? resident * static_cast<uint64_t>(sysconf(_SC_PAGESIZE)) : 0;
}

}  // namespace mu
