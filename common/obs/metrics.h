// What a process can be asked in figures, before anybody has chosen a format: families of metrics
// as Prometheus has them, with its rules for names and units (seconds, bytes, "_total").
//
//   void Collect(MetricList* list) {
//     list->Gauge("muster_ps_rows", "Rows of tables that exist", rows);
//     list->Counter("muster_ps_pushes_total", "Pushes applied", pushes, {{"table", name}});
//   }
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace mu {

using MetricLabels = std::vector<std::pair<std::string, std::string>>;

// Upper bounds of the intervals that timers count, in seconds; above the last one is one more.
inline constexpr double kLatencyBounds[] = {1e-5,   2.5e-5, 5e-5, 1e-4,   2.5e-4, 5e-4, 1e-3,
                                            2.5e-3, 5e-3,   1e-2, 2.5e-2, 5e-2,   0.1,  0.25,
                                            0.5,    1,      2.5,  5,      10,     30,   60};
inline constexpr int kLatencyBuckets = std::size(kLatencyBounds) + 1;

struct MetricSample {
  MetricLabels labels;
  double value = 0;               // of a histogram: the sum, in seconds
  std::vector<uint64_t> buckets;  // of a histogram: how many in each, not cumulated
};

struct MetricFamily {
  enum Kind { kCounter, kGauge, kHistogram };
  Kind kind = kGauge;
  std::string help;
  std::vector<MetricSample> samples;
};

class MetricList {
 public:
  void Counter(const std::string& name, const std::string& help, double value,
               MetricLabels labels = {}) {
    Add(MetricFamily::kCounter, name, help, {std::move(labels), value, {}});
  }
  void Gauge(const std::string& name, const std::string& help, double value,
             MetricLabels labels = {}) {
    Add(MetricFamily::kGauge, name, help, {std::move(labels), value, {}});
  }
  // `buckets`: kLatencyBuckets of them.
  void Histogram(const std::string& name, const std::string& help, double sum,
                 std::vector<uint64_t> buckets, MetricLabels labels = {}) {
    Add(MetricFamily::kHistogram, name, help, {std::move(labels), sum, std::move(buckets)});
  }

  const std::map<std::string, MetricFamily>& families() const { return families_; }

 private:
  void Add(MetricFamily::Kind kind, const std::string& name, const std::string& help,
           MetricSample sample) {
    MetricFamily& family = families_[name];
    family.kind = kind;
    if (family.help.empty()) family.help = help;
    family.samples.push_back(std::move(sample));
  }

  std::map<std::string, MetricFamily> families_;
};

// Adds what it knows at this moment; from any thread, without blocking for long.
using MetricSource = std::function<void(MetricList*)>;

// What every process has: process_resident_memory_bytes, process_cpu_seconds_total and so on, by
// the names that Prometheus' own clients give them, and muster_build_info.
void AddProcessMetrics(MetricList* list);

}  // namespace mu
