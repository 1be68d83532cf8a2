#include "common/http/metrics_text.h"

#include <prometheus/text_serializer.h>

#include <limits>

namespace mu {
namespace {

prometheus::MetricType TypeOf(MetricFamily::Kind kind) {
  switch (kind) {
    case MetricFamily::kCounter:
      return prometheus::MetricType::Counter;
    case MetricFamily::kHistogram:
      return prometheus::MetricType::Histogram;
    case MetricFamily::kGauge:
      break;
  }
  return prometheus::MetricType::Gauge;
}

prometheus::ClientMetric::Histogram HistogramOf(const MetricSample& sample) {
  prometheus::ClientMetric::Histogram histogram;
  histogram.sample_sum = sample.value;
  for (size_t i = 0; i < sample.buckets.size(); ++i) {
    histogram.sample_count += sample.buckets[i];
    const double bound =
        i < std::size(kLatencyBounds) ? kLatencyBounds[i] : std::numeric_limits<double>::infinity();
    histogram.bucket.push_back({histogram.sample_count, bound});
  }
  return histogram;
}

prometheus::ClientMetric MetricOf(MetricFamily::Kind kind, const MetricSample& sample) {
  prometheus::ClientMetric metric;
  for (const auto& [name, value] : sample.labels) metric.label.push_back({name, value});
  switch (kind) {
    case MetricFamily::kCounter:
      metric.counter.value = sample.value;
      break;
    case MetricFamily::kHistogram:
      metric.histogram = HistogramOf(sample);
      break;
    case MetricFamily::kGauge:
      metric.gauge.value = sample.value;
      break;
  }
  return metric;
}

}  // namespace

std::string MetricsText(const MetricList& list) {
  std::vector<prometheus::MetricFamily> families;
  for (const auto& [name, family] : list.families()) {
    prometheus::MetricFamily& own = families.emplace_back();
    own.name = name;
    own.help = family.help;
    own.type = TypeOf(family.kind);
    for (const MetricSample& sample : family.samples)
      own.metric.push_back(MetricOf(family.kind, sample));
  }
  return prometheus::TextSerializer().Serialize(families);
}

}  // namespace mu
