#include "coordinator/soak/soak_page.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "coordinator/soak/soak_plot.h"

namespace mu {
namespace {

using Verdicts = std::vector<const SoakVerdict*>;

constexpr char kHead[] = R"(<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>Soak</title><style>
body{font:14px/1.45 sans-serif;margin:2em auto;max-width:70em;padding:0 1em;color:#222}
table{border-collapse:collapse;margin:.6em 0}td,th{padding:.25em .7em;border-bottom:1px solid #ddd;text-align:right}
th{background:#f5f5f5}td:first-child,th:first-child,td.text{text-align:left}.flag{color:#b00020}.fine{color:#2e7d32}
svg text{font:12px sans-serif}svg .tick{text-anchor:end;fill:#666;font-size:11px}svg .grid{stroke:#e4e4e4}
polyline{fill:none;stroke-width:1.5}.calm polyline{stroke:#888}.calm circle{fill:#888}
.disturbed polyline{stroke:#1565c0}.disturbed circle{fill:#1565c0}circle.flagged{fill:#b00020!important}
</style></head><body><h1>Soak</h1>
)";

std::string When(const SoakRecord& run) {
  return absl::FormatTime("%Y-%m-%d %H:%M", absl::FromUnixSeconds(run.began), absl::UTCTimeZone());
}

std::string Flags(const SoakVerdict& verdict) {
  std::vector<std::string> flags = verdict.wrong;
  flags.insert(flags.end(), verdict.worse.begin(), verdict.worse.end());
  return absl::StrJoin(flags, "; ");
}

std::string Number(double value, const char* format) {
  if (!std::isfinite(value)) return "";
  char text[64];
  std::snprintf(text, sizeof(text), format, value);
  return text;
}

std::string LossesOf(const SoakRecord& run) {
  return absl::StrJoin(run.losses, ", ", [](std::string* out, const auto& entry) {
    absl::StrAppend(out, entry.second.count, " ", entry.first);
  });
}

std::string RecoveriesOf(const SoakRecord& run) {
  std::vector<std::string> roles;
  for (const auto& [role, losses] : run.losses) {
    if (const std::optional<double> mean = losses.MeanRecoverySeconds(); mean.has_value())
      roles.push_back(absl::StrFormat("%s %.2f s", role, *mean));
  }
  return absl::StrJoin(roles, ", ");
}

std::string PlotOf(const Verdicts& runs, const std::string& title,
                   const std::function<double(const SoakVerdict&)>& value) {
  std::vector<PlotPoint> points;
  for (const SoakVerdict* verdict : runs) {
    PlotPoint& point = points.emplace_back();
    point.value = verdict->run->done() ? value(*verdict) : std::nan("");
    point.disturbed = verdict->run->disturbed();
    point.flagged = verdict->flagged();
    point.text = absl::StrCat(When(*verdict->run), ", version ", verdict->run->version, ": ",
                              absl::StrFormat("%.5g", point.value), point.flagged ? "; " : "",
                              Flags(*verdict));
  }
  return Plot(title, points);
}

// By role, as far as a run went on after a loss: sums over all runs do not show a slow decay.
std::string RecoveryPlots(const Verdicts& runs) {
  std::set<std::string> roles;
  for (const SoakVerdict* verdict : runs) {
    for (const auto& [role, losses] : verdict->run->losses) {
      if (verdict->run->done() && losses.recovered > 0) roles.insert(role);
    }
  }
  std::string html;
  for (const std::string& role : roles) {
    absl::StrAppend(&html,
                    PlotOf(runs, absl::StrCat(role, ": seconds until work went on, mean"),
                           [&](const SoakVerdict& v) {
                             const auto losses = v.run->losses.find(role);
                             if (losses == v.run->losses.end()) return std::nan("");
                             return losses->second.MeanRecoverySeconds().value_or(std::nan(""));
                           }));
  }
  return html;
}

std::string RunsTable(const Verdicts& runs) {
  std::string html =
      "<table><tr><th>run</th><th>version</th><th>injected</th><th>status</th><th>time</th>"
      "<th>of undisturbed</th><th>quality</th><th>against undisturbed</th><th>losses</th>"
      "<th>until work went on, mean</th><th>steps repeated</th><th>flagged</th></tr>\n";
  for (auto at = runs.rbegin(); at != runs.rend(); ++at) {
    const SoakVerdict& verdict = **at;
    const SoakRecord& run = *verdict.run;
    uint64_t repeated = 0;
    for (const auto& [role, losses] : run.losses) repeated += losses.steps_repeated;
    // Negative: worse than undisturbed.
    const double gained = verdict.quality_lost.has_value() ? -*verdict.quality_lost : std::nan("");
    absl::StrAppend(&html, "<tr><td>", When(run), "</td><td class=\"text\">", Escaped(run.version),
                    "</td><td class=\"text\">",
                    Escaped(run.disturbed() ? run.preemption : "nothing"), "</td><td>",
                    Escaped(run.status), "</td><td>", Number(run.seconds, "%.1f s"), "</td><td>",
                    verdict.slowdown > 0 ? Number(verdict.slowdown, "%.2f") : "", "</td><td>",
                    Number(run.quality, "%.4f"), "</td><td>", Number(gained, "%+.4f"),
                    "</td><td class=\"text\">", Escaped(LossesOf(run)), "</td><td class=\"text\">",
                    Escaped(RecoveriesOf(run)), "</td><td>", repeated,
                    "</td><td class=\"text flag\">", Escaped(Flags(verdict)), "</td></tr>\n");
  }
  return html + "</table>\n";
}

// Of all disturbed runs that were done, by role.
std::string LossesTable(const Verdicts& runs) {
  std::map<std::string, SoakLosses> sums;
  for (const SoakVerdict* verdict : runs) {
    if (!verdict->run->done()) continue;
    for (const auto& [role, losses] : verdict->run->losses) sums[role].Add(losses);
  }
  if (sums.empty()) return "";
  std::string html =
      "<table><tr><th>what a loss cost</th><th>losses</th><th>until work went on, mean</th>"
      "<th>longest</th><th>steps repeated</th><th>updates rolled back</th></tr>\n";
  for (const auto& [role, sum] : sums) {
    const double count = static_cast<double>(sum.count);
    absl::StrAppend(
        &html, "<tr><td>", Escaped(role), "</td><td>", sum.count, "</td><td>",
        Number(sum.MeanRecoverySeconds().value_or(std::nan("")), "%.2f s"), "</td><td>",
        Number(sum.longest_recovery_seconds.value_or(std::nan("")), "%.2f s"), "</td><td>",
        Number(static_cast<double>(sum.steps_repeated) / count, "%.1f"), "</td><td>",
        Number(static_cast<double>(sum.updates_rolled_back) / count, "%.1f"), "</td></tr>\n");
  }
  return html + "</table>\n";
}

// Of the same runs, by role and kind, as far as their failures are listed.
std::string KindsTable(const Verdicts& runs) {
  struct OfKind {
    uint64_t losses = 0;
    std::vector<double> recoveries;  // seconds
    uint64_t steps_repeated = 0;
  };
  std::map<std::pair<std::string, std::string>, OfKind> kinds;
  uint64_t not_listed = 0;
  for (const SoakVerdict* verdict : runs) {
    if (!verdict->run->done()) continue;
    not_listed += verdict->run->failures_not_listed();
    for (const SoakFailure& failure : verdict->run->failures) {
      OfKind& of = kinds[{failure.role, failure.kind}];
      ++of.losses;
      if (failure.recovered_ms.has_value()) of.recoveries.push_back(*failure.recovered_ms / 1000);
      of.steps_repeated += failure.steps_repeated;
    }
  }
  if (kinds.empty()) return "";
  std::string html =
      "<table><tr><th>losses by kind</th><th>kind</th><th>losses</th>"
      "<th>until work went on, median</th><th>longest</th><th>steps repeated, in all</th></tr>\n";
  for (const auto& [key, of] : kinds) {
    const bool known = !of.recoveries.empty();
    const double longest =
        known ? *std::max_element(of.recoveries.begin(), of.recoveries.end()) : std::nan("");
    absl::StrAppend(&html, "<tr><td>", Escaped(key.first), "</td><td class=\"text\">",
                    Escaped(key.second), "</td><td>", of.losses, "</td><td>",
                    Number(known ? Median(of.recoveries) : std::nan(""), "%.2f s"), "</td><td>",
                    Number(longest, "%.2f s"), "</td><td>", of.steps_repeated, "</td></tr>\n");
  }
  html += "</table>\n";
  if (not_listed > 0) {
    absl::StrAppend(&html, "<p>The table by kind lacks ", not_listed,
                    " losses: of a run the record lists at most ", SoakRecord::kMostFailures,
                    ", the first and the last, and in lines of older versions none.</p>\n");
  }
  return html;
}

// Of the newest disturbed run that can be compared.
std::string CostTable(const Verdicts& runs, const SoakPrices& prices) {
  const auto newest = std::find_if(runs.rbegin(), runs.rend(), [](const SoakVerdict* verdict) {
    return verdict->run->done() && verdict->calm.has_value();
  });
  if (newest == runs.rend()) return "";
  std::vector<RoleCost> costs = CostOf(**newest, prices);
  costs.push_back(TotalOf(costs));
  std::string html = absl::StrCat("<table><tr><th>cost of the run of ", When(*(*newest)->run), ", ",
                                  Escaped(prices.currency),
                                  "</th><th>machines</th><th>on demand, "
                                  "undisturbed</th><th>preemptible</th><th>saved</th></tr>\n");
  for (const RoleCost& cost : costs) {
    absl::StrAppendFormat(
        &html, "<tr><td>%s</td><td>%d</td><td>%.6f</td><td>%.6f</td><td>%s</td></tr>\n", cost.role,
        cost.machines, cost.on_demand, cost.preemptible,
        cost.on_demand > 0 ? Number(100 * (1 - cost.preemptible / cost.on_demand), "%.0f%%") : "");
  }
  return html + "</table>\n";
}

std::string SectionOf(const Verdicts& runs, const std::optional<SoakPrices>& prices) {
  const SoakVerdict& newest = *runs.back();
  std::string html =
      absl::StrCat("<h2>", Escaped(newest.run->job), "</h2>\n<p>", newest.run->workers,
                   " workers, ", newest.run->ps, " servers, ", runs.size(),
                   " runs. Grey: undisturbed; blue: with preemptions; red: flagged. ");
  const auto flagged = std::count_if(runs.begin(), runs.end(),
                                     [](const SoakVerdict* verdict) { return verdict->flagged(); });
  absl::StrAppend(&html,
                  flagged == 0 ? "<span class=\"fine\">Nothing is flagged.</span>"
                               : absl::StrCat("<span class=\"flag\">", flagged, " flagged.</span>"),
                  "</p>\n",
                  PlotOf(runs, "seconds", [](const SoakVerdict& v) { return v.run->seconds; }));
  if (!newest.run->metric.empty())
    absl::StrAppend(&html, PlotOf(runs, newest.run->metric, [&](const SoakVerdict& v) {
      return v.run->metric == newest.run->metric ? v.run->quality : std::nan("");
    }));
  absl::StrAppend(&html, RecoveryPlots(runs), "\n", LossesTable(runs), KindsTable(runs));
  if (prices.has_value()) absl::StrAppend(&html, CostTable(runs, *prices));
  return html + RunsTable(runs);
}

}  // namespace

std::string SoakPage(const std::vector<SoakVerdict>& verdicts,
                     const std::optional<SoakPrices>& prices) {
  // Of one job and setup together, in the order of their newest runs.
  std::vector<Verdicts> groups;
  for (const SoakVerdict& verdict : verdicts) {
    const auto same = std::find_if(groups.begin(), groups.end(), [&](const Verdicts& group) {
      return group.front()->run->job == verdict.run->job &&
             group.front()->run->setup == verdict.run->setup;
    });
    Verdicts group = same == groups.end() ? Verdicts() : std::move(*same);
    if (same != groups.end()) groups.erase(same);
    group.push_back(&verdict);
    groups.push_back(std::move(group));
  }
  std::string html = kHead;
  if (groups.empty()) absl::StrAppend(&html, "<p>There is no run yet.</p>\n");
  for (auto group = groups.rbegin(); group != groups.rend(); ++group)
    absl::StrAppend(&html, SectionOf(*group, prices));
  return html + "</body></html>\n";
}

}  // namespace mu
