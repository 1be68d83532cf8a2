#include "coordinator/soak/soak_judge.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/metrics/metric_set.h"

namespace mu {
namespace {

using Value = std::function<std::optional<double>(const SoakRecord&)>;

bool SameKind(const SoakRecord& a, const SoakRecord& b) {
  return a.job == b.job && a.setup == b.setup && a.preemption == b.preemption;
}

// The last `window` finite values of runs that are done and of `like`'s kind, before `like`.
std::vector<double> Earlier(const std::vector<SoakRecord>& records, const SoakRecord& like,
                            size_t window, const Value& value) {
  std::vector<double> found;
  for (const SoakRecord& record : records) {
    if (&record == &like) break;
    if (!record.done() || !SameKind(record, like)) continue;
    if (const auto one = value(record); one.has_value() && std::isfinite(*one))
      found.push_back(*one);
  }
  if (found.size() > window) found.erase(found.begin(), found.end() - static_cast<long>(window));
  return found;
}

std::optional<double> RecoverySeconds(const SoakRecord& record, const std::string& role) {
  const auto at = record.losses.find(role);
  return at == record.losses.end() ? std::nullopt : at->second.MeanRecoverySeconds();
}

// Of the newest `window` of these runs that have one by this metric; NaN: none has.
double QualityOf(const std::vector<const SoakRecord*>& runs, const std::string& metric,
                 size_t window) {
  std::vector<double> qualities;
  for (auto run = runs.rbegin(); run != runs.rend() && qualities.size() < window; ++run) {
    if ((*run)->metric == metric && std::isfinite((*run)->quality))
      qualities.push_back((*run)->quality);
  }
  return qualities.empty() ? std::nan("") : Median(qualities);
}

std::optional<SoakBaseline> BaselineOf(const std::vector<SoakRecord>& records,
                                       const SoakRecord& run, const SoakLimits& limits) {
  std::vector<const SoakRecord*> before, after;
  for (const SoakRecord& record : records) {
    if (record.disturbed() || !record.done() || record.job != run.job || record.setup != run.setup)
      continue;
    (&record < &run ? before : after).push_back(&record);
  }
  double quality = QualityOf(before, run.metric, limits.window);
  if (!std::isfinite(quality)) quality = QualityOf(after, run.metric, limits.window);
  if (before.empty()) before = std::move(after);
  if (before.empty()) return std::nullopt;
  if (before.size() > limits.window)
    before.erase(before.begin(), before.end() - static_cast<long>(limits.window));
  std::vector<double> seconds;
  for (const SoakRecord* record : before) seconds.push_back(record->seconds);
  return SoakBaseline{Median(seconds), quality, before.back()->samples};
}

// How much worse a value is than another, by the metric. Nothing: that cannot be said.
std::optional<double> Lost(const std::string& metric, double value, double than) {
  if (!std::isfinite(value) || !std::isfinite(than)) return std::nullopt;
  const auto better = BetterOf(metric);
  if (!better.ok()) return std::nullopt;
  return -Improvement(*better, value, than);
}

void AgainstBefore(const std::vector<SoakRecord>& records, const SoakLimits& limits,
                   SoakVerdict* verdict) {
  const SoakRecord& run = *verdict->run;
  // `times`: how often it took so long. A short while that happens a few times is no matter,
  // however much longer it is than before.
  const auto slower = [&](const std::string& what, const Value& value, double limit, double times,
                          double least) {
    const std::vector<double> earlier = Earlier(records, run, limits.window, value);
    const auto now = value(run);
    if (!now.has_value() || earlier.size() < limits.least) return;
    const double median = Median(earlier);
    if (*now > limit * median && median > 0 && times * (*now - median) >= least) {
      verdict->worse.push_back(absl::StrFormat("%s: %.3g s, %.2f times the median of the %d before",
                                               what, *now, *now / median, earlier.size()));
    }
  };
  slower(
      run.disturbed() ? "time with preemptions" : "time undisturbed",
      [](const SoakRecord& record) { return record.seconds; }, limits.time, /*times=*/1,
      /*least=*/0);
  for (const auto& [role, losses] : run.losses) {
    slower(
        absl::StrCat("recovery from the loss of a ", role),
        [&, role = role](const SoakRecord& record) { return RecoverySeconds(record, role); },
        limits.recovery, static_cast<double>(losses.recovered), limits.cost * run.seconds);
  }
  // By another metric they are other numbers.
  const std::vector<double> qualities =
      Earlier(records, run, limits.window, [&](const SoakRecord& record) {
        return record.metric == run.metric ? std::optional<double>(record.quality) : std::nullopt;
      });
  if (qualities.size() < limits.least) return;
  const std::optional<double> lost = Lost(run.metric, run.quality, Median(qualities));
  if (lost.has_value() && *lost > limits.quality) {
    verdict->worse.push_back(
        absl::StrFormat("%s: %.4f, %.4f worse than the median of the %d before", run.metric,
                        run.quality, *lost, qualities.size()));
  }
}

void AgainstCalm(const SoakLimits& limits, SoakVerdict* verdict) {
  const SoakRecord& run = *verdict->run;
  const SoakBaseline& calm = *verdict->calm;
  if (calm.seconds > 0) verdict->slowdown = run.seconds / calm.seconds;
  if (run.exact && run.samples != calm.samples) {
    verdict->wrong.push_back(
        absl::StrCat("it used ", run.samples, " samples, undisturbed ", calm.samples));
  }
  verdict->quality_lost = Lost(run.metric, run.quality, calm.quality);
  if (verdict->quality_lost.has_value() && *verdict->quality_lost > limits.quality) {
    verdict->worse.push_back(
        absl::StrFormat("%s: %.4f, undisturbed %.4f", run.metric, run.quality, calm.quality));
  }
}

}  // namespace

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

std::vector<SoakVerdict> Judge(const std::vector<SoakRecord>& records, const SoakLimits& limits) {
  std::vector<SoakVerdict> verdicts;
  for (const SoakRecord& record : records) {
    SoakVerdict& verdict = verdicts.emplace_back();
    verdict.run = &record;
    if (record.disturbed()) verdict.calm = BaselineOf(records, record, limits);
    if (record.status == "stopped") continue;  // by who soaks: it says nothing
    if (!record.done()) {
      verdict.wrong.push_back(absl::StrCat("it ended as ", record.status,
                                           record.error.empty() ? "" : ": ", record.error));
      continue;
    }
    if (!record.metric.empty() && !std::isfinite(record.quality)) {
      verdict.worse.push_back(absl::StrCat(
          "its report has no value of ", record.metric,
          ", so its quality is not judged; name a metric that the job computes with --metric"));
    }
    if (verdict.calm.has_value()) AgainstCalm(limits, &verdict);
    AgainstBefore(records, limits, &verdict);
  }
  return verdicts;
}

}  // namespace mu
