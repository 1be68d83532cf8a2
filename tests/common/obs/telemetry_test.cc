#include "common/obs/telemetry.h"

#include <gmock/gmock.h>

#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "common/env/file.h"
#include "common/obs/chrome_trace.h"
#include "common/obs/parts_table.h"
#include "tests/testing/matchers.h"

namespace mu {
namespace {

using ::testing::HasSubstr;

TEST(Telemetry, CountersAndTimersByName) {
  Telemetry telemetry;
  Counter* const rows = telemetry.counter("rows");
  EXPECT_EQ(telemetry.counter("rows"), rows);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 1000; ++i) {
        rows->Add(2);
        telemetry.timer("pull")->Record(100, 110);
        telemetry.counter("other")->Add();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  telemetry.counter("gauge")->Set(-5);
  const pb::TelemetryReply reply = telemetry.ToReply({});
  ASSERT_EQ(reply.counters_size(), 3);
  EXPECT_EQ(reply.counters(0).name(), "gauge");
  EXPECT_EQ(reply.counters(0).value(), -5);
  EXPECT_EQ(reply.counters(1).value(), 4000);
  EXPECT_EQ(reply.counters(2).name(), "rows");
  EXPECT_EQ(reply.counters(2).value(), 8000);
  ASSERT_EQ(reply.timers_size(), 1);
  EXPECT_EQ(reply.timers(0).count(), 4000u);
  EXPECT_EQ(reply.timers(0).total_ns(), 40000u);
  EXPECT_EQ(reply.spans_size(), 0);
  EXPECT_GT(reply.resident_bytes(), 1u << 20);
  EXPECT_LE(reply.now_ns(), NowNs());
}

TEST(Telemetry, SpansOnlyWhileTracing) {
  Telemetry telemetry;
  Timer* const timer = telemetry.timer("compute");
  { ScopedTimer timing(timer); }
  pb::TelemetryRequest start;
  start.set_trace(true);
  start.set_drain_spans(true);
  EXPECT_EQ(telemetry.ToReply(start).spans_size(), 0);
  const uint64_t before = NowNs();
  {
    ScopedTimer timing(timer);
    ScopedTimer nothing(nullptr);
    ScopedTimer stopped(timer);
    stopped.Stop();
    stopped.Stop();
  }
  timer->Record(5, 4, "clock went back");
  std::thread([&] { telemetry.AddSpan("other thread", 7, 9, "detail"); }).join();
  pb::TelemetryRequest drain;
  drain.set_drain_spans(true);
  const pb::TelemetryReply reply = telemetry.ToReply(drain);
  EXPECT_EQ(timer->count(), 4u);
  ASSERT_EQ(reply.spans_size(), 4);
  std::map<std::string, std::vector<pb::SpanProto>> spans;
  for (const auto& span : reply.spans()) spans[span.name()].push_back(span);
  ASSERT_EQ(spans["compute"].size(), 3u);
  EXPECT_GE(spans["compute"][1].start_ns(), before);
  EXPECT_GE(spans["compute"][1].duration_ns(), spans["compute"][0].duration_ns());
  EXPECT_EQ(spans["compute"][2].duration_ns(), 0u);
  EXPECT_EQ(spans["other thread"][0].detail(), "detail");
  EXPECT_NE(spans["other thread"][0].thread(), spans["compute"][0].thread());
  // Taken out once; still on, as the request did not say otherwise; off when it does.
  EXPECT_EQ(telemetry.ToReply(drain).spans_size(), 0);
  EXPECT_TRUE(telemetry.tracing());
  start.set_trace(false);
  telemetry.ToReply(start);
  EXPECT_FALSE(telemetry.tracing());
}

TEST(Telemetry, AsyncSpansAreOfNoThread) {
  Telemetry telemetry;
  { ScopedSpan nothing(&telemetry, "before"); }
  telemetry.SetTracing(true);
  telemetry.AddAsyncSpan("function", 5, 9, "17");
  {
    ScopedSpan scope(&telemetry, "checkpoint");
    scope.set_detail("ckpt-1");
  }
  pb::TelemetryRequest drain;
  drain.set_drain_spans(true);
  const pb::TelemetryReply reply = telemetry.ToReply(drain);
  ASSERT_EQ(reply.spans_size(), 2);
  EXPECT_EQ(reply.spans(0).thread(), 0u);
  EXPECT_EQ(reply.spans(0).duration_ns(), 4u);
  EXPECT_EQ(reply.spans(1).name(), "checkpoint");
  EXPECT_EQ(reply.spans(1).detail(), "ckpt-1");
  EXPECT_NE(reply.spans(1).thread(), 0u);
  EXPECT_GE(reply.spans(1).start_ns() + reply.spans(1).duration_ns(), reply.spans(1).start_ns());
}

TEST(Telemetry, SpansAreBoundedAndLossesCounted) {
  Telemetry telemetry;
  telemetry.SetTracing(true);
  Timer* const timer = telemetry.timer("x");
  const int many = 40000;
  for (int i = 0; i < many; ++i) timer->Record(1, 2);
  pb::TelemetryRequest drain;
  drain.set_drain_spans(true);
  const pb::TelemetryReply reply = telemetry.ToReply(drain);
  EXPECT_GT(reply.dropped_spans(), 0u);
  EXPECT_EQ(reply.spans_size() + static_cast<int>(reply.dropped_spans()), many);
  EXPECT_EQ(timer->count(), static_cast<uint64_t>(many));
}

pb::SpanProto Span(const std::string& name, uint64_t start, uint64_t duration,
                   uint32_t thread = 1) {
  pb::SpanProto span;
  span.set_name(name);
  span.set_start_ns(start);
  span.set_duration_ns(duration);
  span.set_thread(thread);
  return span;
}

TEST(ChromeTrace, PutsAllProcessesOnOneClock) {
  // The server's clock is 1000 ns ahead.
  std::vector<ProcessSpans> processes = {{.name = "worker 0", .spans = {Span("pull", 2000, 500)}},
                                         {.name = "psserver 0",
                                          .clock_offset_ns = -1000,
                                          .spans = {Span("serve \"\xFF\"", 3100, 300, 4)},
                                          .dropped_spans = 9}};
  processes[1].spans[0].set_detail("rows");
  const nlohmann::json trace = nlohmann::json::parse(ChromeTraceJson(processes));
  std::map<std::string, nlohmann::json> events;
  for (const auto& event : trace["traceEvents"]) {
    if (event["ph"] == "X") events[event["pid"] == 1 ? "pull" : "serve"] = event;
  }
  EXPECT_EQ(events["pull"]["ts"], 0.0);
  EXPECT_EQ(events["pull"]["dur"], 0.5);
  EXPECT_EQ(events["serve"]["ts"], 0.1);  // within the pull that waits for it
  EXPECT_EQ(events["serve"]["tid"], 4);
  EXPECT_EQ(events["serve"]["args"]["detail"], "rows");
  EXPECT_THAT(trace.dump(), HasSubstr("psserver 0 (9 spans lost)"));
  EXPECT_TRUE(nlohmann::json::parse(ChromeTraceJson({})).contains("traceEvents"));
}

TEST(ChromeTrace, SpansOfNoThreadMayOverlap) {
  const std::vector<ProcessSpans> processes = {
      {.name = "coordinator",
       .spans = {Span("first", 1000, 4000, 0), Span("second", 2000, 9000, 0)}}};
  const nlohmann::json trace = nlohmann::json::parse(ChromeTraceJson(processes));
  std::map<std::string, std::map<std::string, nlohmann::json>> events;
  for (const auto& event : trace["traceEvents"]) {
    if (event["ph"] != "M") events[event["name"]][event["ph"]] = event;
  }
  for (const auto& [name, begin, end] :
       {std::tuple{"first", 0.0, 4.0}, std::tuple{"second", 1.0, 10.0}}) {
    ASSERT_EQ(events[name].size(), 2u);
    EXPECT_EQ(events[name]["b"]["ts"], begin);
    EXPECT_EQ(events[name]["e"]["ts"], end);
    EXPECT_EQ(events[name]["b"]["id"], events[name]["e"]["id"]);
    EXPECT_EQ(events[name]["b"]["cat"], events[name]["e"]["cat"]);
  }
  EXPECT_NE(events["first"]["b"]["id"], events["second"]["b"]["id"]);
}

TEST(ChromeTrace, IsWrittenWhole) {
  const std::string path = ::testing::TempDir() + "chrome_trace_test.json";
  MU_ASSERT_OK(WriteChromeTrace(path, {{.name = "coordinator", .spans = {Span("join", 1, 2)}}}));
  MU_ASSERT_OK_AND_ASSIGN(const std::string text, ReadFile(path));
  EXPECT_EQ(nlohmann::json::parse(text)["traceEvents"].size(), 3u);
  std::remove(path.c_str());
  EXPECT_FALSE(WriteChromeTrace("/no/such/folder/trace.json", {}).ok());
}

TEST(PartsTable, SumsAndSorts) {
  pb::TelemetryReply reply;
  for (const auto& [name, ns] :
       {std::pair{"pull", 2'000'000'000}, std::pair{"compute_forward", 500'000'000}}) {
    pb::TimerProto* timer = reply.add_timers();
    timer->set_name(name);
    timer->set_count(1000);
    timer->set_total_ns(static_cast<uint64_t>(ns));
  }
  TimerSums sums;
  AddTimers(reply, &sums);
  AddTimers(reply, &sums);
  EXPECT_EQ(sums["pull"].count, 2000u);
  const std::string table = PartsTable(sums);
  EXPECT_THAT(
      table,
      ::testing::ContainsRegex(
          "part +seconds +times +us each\npull +4.000 +2000 +2000.0\ncompute_forward +1.000"));
}

}  // namespace
}  // namespace mu
