// Metrics in Prometheus' text format, version 0.0.4.
#pragma once

#include <string>

#include "common/obs/metrics.h"

namespace mu {

inline constexpr char kMetricsContentType[] = "text/plain; version=0.0.4; charset=utf-8";

std::string MetricsText(const MetricList& list);

}  // namespace mu
