#include "common/metrics/metric_set.h"

#include <algorithm>
#include <cmath>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status.h"
#include "common/graph/nearest_name.h"

namespace mu {
namespace {

constexpr double kDefaultThreshold = 0.5;
constexpr double kMostK = 1'000'000;

bool Accepts(MetricParameter parameter, const MetricName& name) {
  switch (parameter) {
    case MetricParameter::kNone:
      return !name.has_parameter;
    case MetricParameter::kK:
      return name.has_parameter && name.whole_parameter && name.parameter >= 1 &&
             name.parameter <= kMostK;
    case MetricParameter::kThreshold:
      return !name.has_parameter || (name.parameter > 0 && name.parameter < 1);
  }
  return false;
}

// How it is written, with a parameter as an example.
std::string Spelling(const MetricDef& def) {
  switch (def.parameter) {
    case MetricParameter::kNone:
      return def.name;
    case MetricParameter::kK:
      return absl::StrCat(def.name, "@10");
    case MetricParameter::kThreshold:
      return absl::StrCat(def.name, " or ", def.name, "@0.3");
  }
  return "";
}

// Each once, in the table's order.
std::string Spellings(bool (*of)(const MetricDef&, const std::string&, Task),
                      const std::string& name, Task task) {
  std::vector<std::string> found;
  for (const MetricDef& def : MetricTable()) {
    if (!of(def, name, task)) continue;
    const std::string spelling = Spelling(def);
    // Another task's "accuracy or accuracy@0.3" says this one too.
    const bool said = absl::c_any_of(found, [&](const std::string& other) {
      return other == spelling || absl::StartsWith(other, spelling + " or ");
    });
    if (!said) found.push_back(spelling);
  }
  return absl::StrJoin(found, ", ");
}

const MetricDef* FindMetric(Task task, const MetricName& name) {
  for (const MetricDef& def : MetricTable()) {
    if (def.task == task && def.name == name.name && Accepts(def.parameter, name)) return &def;
  }
  return nullptr;
}

}  // namespace

absl::StatusOr<MetricName> ParseMetricName(const std::string& text) {
  MetricName parsed;
  const size_t at = text.find('@');
  parsed.name = text.substr(0, at);
  if (at == std::string::npos) return parsed;
  const std::string number = text.substr(at + 1);
  parsed.has_parameter = true;
  parsed.whole_parameter = number.find_first_not_of("0123456789") == std::string::npos;
  if (number.find_first_not_of("0123456789.") != std::string::npos ||
      !absl::SimpleAtod(number, &parsed.parameter)) {
    return absl::InvalidArgumentError(
        absl::StrCat("`", text, "` has no number behind the @; write for example ndcg@10"));
  }
  return parsed;
}

absl::Status CheckMetricName(const std::string& text) {
  MU_ASSIGN_OR_RETURN(const MetricName name, ParseMetricName(text));
  std::vector<std::string> names;
  bool known = false;
  for (const MetricDef& def : MetricTable()) {
    if (def.name == name.name && Accepts(def.parameter, name)) return absl::OkStatus();
    known = known || def.name == name.name;
    names.emplace_back(def.name);
  }
  const auto same_name = [](const MetricDef& def, const std::string& wanted, Task) {
    return def.name == wanted;
  };
  if (known) {
    return absl::InvalidArgumentError(absl::StrCat("`", text,
                                                   "` is not how this metric is written; write ",
                                                   Spellings(same_name, name.name, Task())));
  }
  // What is cut short is meant before what differs by a letter.
  const auto begins = absl::c_find_if(names, [&](const std::string& known_name) {
    return name.name.size() > 1 && absl::StartsWith(known_name, name.name);
  });
  const std::string nearest = begins != names.end() ? *begins : NearestName(name.name, names);
  return absl::InvalidArgumentError(
      absl::StrCat("there is no metric `", name.name, "`; ",
                   nearest.empty() ? "docs/reference/metrics.md lists them"
                                   : absl::StrCat("did you mean `", nearest, "`?")));
}

bool TaskHasMetric(Task task, const std::string& text) {
  const auto name = ParseMetricName(text);
  return name.ok() && FindMetric(task, *name) != nullptr;
}

absl::StatusOr<Better> BetterOf(const std::string& text) {
  // A threshold may have a dot, too.
  const size_t dot = text.substr(0, text.find('@')).rfind('.');
  const std::string metric = dot == std::string::npos ? text : text.substr(dot + 1);
  MU_RETURN_IF_ERROR(CheckMetricName(metric));
  MU_ASSIGN_OR_RETURN(const MetricName name, ParseMetricName(metric));
  for (const MetricDef& def : MetricTable()) {
    if (def.name == name.name && Accepts(def.parameter, name)) return def.better;
  }
  return absl::InternalError(absl::StrCat("`", text, "` is in no table"));
}

double Improvement(Better better, double value, double than) {
  switch (better) {
    case Better::kGreater:
      return value - than;
    case Better::kLess:
      return than - value;
    case Better::kNearOne:
      return std::abs(than - 1) - std::abs(value - 1);
  }
  return 0;
}

std::vector<std::string> DefaultMetrics(Task task, bool has_group) {
  switch (task) {
    case Task::kBinaryClassification:
      return has_group ? std::vector<std::string>{"auc", "logloss", "accuracy", "gauc"}
                       : std::vector<std::string>{"auc", "logloss", "accuracy"};
    case Task::kRegression:
      return {"rmse", "mae"};
    case Task::kMultiClass:
      return {"accuracy", "logloss"};
    case Task::kRanking:
      return {"gauc", "hit_rate@10", "ndcg@10", "mrr"};
  }
  return {};
}

absl::StatusOr<MetricSet> MetricSet::Create(Task task, const std::vector<std::string>& names,
                                            bool has_group) {
  MetricSet set;
  for (const std::string& text : names) {
    MU_RETURN_IF_ERROR(CheckMetricName(text));
    MU_ASSIGN_OR_RETURN(const MetricName name, ParseMetricName(text));
    const MetricDef* const def = FindMetric(task, name);
    if (def == nullptr) {
      const auto of_task = [](const MetricDef& each, const std::string&, Task wanted) {
        return each.task == wanted;
      };
      return absl::InvalidArgumentError(
          absl::StrCat("`", text, "` is no metric of the task, which is ",
                       std::string(TaskName(task)), "; it has ", Spellings(of_task, "", task)));
    }
    if (def->needs_group && !has_group) {
      return absl::InvalidArgumentError(
          absl::StrCat("`", text, "` is measured by group; name a column such as the user's in ",
                       "evaluation.group"));
    }
    const double parameter = name.has_parameter ? name.parameter : kDefaultThreshold;
    def->require(parameter, &set.parts_);
    set.chosen_.push_back({text, parameter, def});
  }
  return set;
}

std::vector<std::string> MetricSet::Names() const {
  std::vector<std::string> names;
  for (const Chosen& metric : chosen_) names.push_back(metric.name);
  return names;
}

std::vector<MetricValue> MetricSet::Values() const {
  std::vector<MetricValue> values;
  for (const Chosen& metric : chosen_) {
    values.push_back(metric.def->value(metric.parameter, parts_));
    values.back().name = metric.name;
  }
  return values;
}

std::vector<std::string> MetricSet::WithoutWeights() const {
  std::vector<std::string> names;
  for (const Chosen& metric : chosen_) {
    if (!metric.def->takes_weights) names.push_back(metric.name);
  }
  return names;
}

}  // namespace mu
