#include "common/http/metrics_text.h"

#include <gmock/gmock.h>

#include "common/obs/telemetry.h"

namespace mu {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string TextOf(const Telemetry& telemetry) {
  MetricList list;
  telemetry.AddMetrics(&list);
  return MetricsText(list);
}

TEST(MetricsText, CountersGaugesAndLabels) {
  MetricList list;
  list.Counter("muster_steps_total", "Steps", 12);
  list.Gauge("muster_members", "Members", 2, {{"role", "worker"}, {"state", "a \"b\"\n"}});
  list.Gauge("muster_members", "Members", 1, {{"role", "psserver"}, {"state", "ready"}});
  EXPECT_EQ(MetricsText(list),
            "# HELP muster_members Members\n"
            "# TYPE muster_members gauge\n"
            "muster_members{role=\"worker\",state=\"a \\\"b\\\"\\n\"} 2\n"
            "muster_members{role=\"psserver\",state=\"ready\"} 1\n"
            "# HELP muster_steps_total Steps\n"
            "# TYPE muster_steps_total counter\n"
            "muster_steps_total 12\n");
}

TEST(MetricsText, ATimerIsAHistogramOfSeconds) {
  Telemetry telemetry;
  Timer* const timer = telemetry.timer("ps.pull", "Pulls");
  timer->Record(0, 10'000);  // 10 us: a bound belongs to the interval below it
  timer->Record(0, 10'001);
  timer->Record(5, 3);               // a clock that goes back counts as no time
  timer->Record(0, 61'000'000'000);  // above the last bound
  const std::string text = TextOf(telemetry);
  EXPECT_THAT(text, HasSubstr("# TYPE muster_ps_pull_seconds histogram\n"));
  EXPECT_THAT(text, HasSubstr("muster_ps_pull_seconds_bucket{le=\"1e-05\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("muster_ps_pull_seconds_bucket{le=\"2.5e-05\"} 3\n"));
  EXPECT_THAT(text, HasSubstr("muster_ps_pull_seconds_bucket{le=\"60\"} 3\n"));
  EXPECT_THAT(text, HasSubstr("muster_ps_pull_seconds_bucket{le=\"+Inf\"} 4\n"));
  EXPECT_THAT(text, HasSubstr("muster_ps_pull_seconds_count 4\n"));
  EXPECT_THAT(text, HasSubstr("muster_ps_pull_seconds_sum 61.00002"));
}

TEST(MetricsText, OnlyWhatHasAHelpTextIsAMetric) {
  Telemetry telemetry;
  telemetry.counter("worker.steps", "Steps")->Add(3);
  telemetry.counter("worker.steps", "Steps", {{"kind", "b"}})->Add(4);
  telemetry.counter("worker.steps", "Steps", {{"kind", "a"}})->Add(5);
  telemetry.counter("internal")->Add(7);
  telemetry.timer("span")->Record(1, 2);
  const std::string text = TextOf(telemetry);
  EXPECT_THAT(text, HasSubstr("muster_worker_steps_total 3\n"
                              "muster_worker_steps_total{kind=\"a\"} 5\n"
                              "muster_worker_steps_total{kind=\"b\"} 4\n"));
  EXPECT_THAT(text, Not(HasSubstr("internal")));
  EXPECT_THAT(text, Not(HasSubstr("span")));
  // Those with labels are no parts of the work, which the report of a run lists.
  EXPECT_EQ(telemetry.ToReply({}).counters_size(), 2);
}

TEST(MetricsText, TheProcessByPrometheusOwnNames) {
  MetricList list;
  AddProcessMetrics(&list);
  const auto value = [&](const char* name) {
    const auto it = list.families().find(name);
    return it == list.families().end() || it->second.samples.empty() ? -1.0
                                                                     : it->second.samples[0].value;
  };
  EXPECT_GT(value("process_cpu_seconds_total"), 0);
  EXPECT_GT(value("process_resident_memory_bytes"), 1 << 20);
  EXPECT_GT(value("process_virtual_memory_bytes"), value("process_resident_memory_bytes"));
  EXPECT_GE(value("process_threads"), 1);
  EXPECT_GE(value("process_open_fds"), 3);
  EXPECT_GE(value("process_max_fds"), value("process_open_fds"));
  EXPECT_GT(value("process_start_time_seconds"), 1.6e9);
  EXPECT_EQ(value("muster_build_info"), 1);
}

}  // namespace
}  // namespace mu
