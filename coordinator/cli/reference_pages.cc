#include "coordinator/cli/reference_pages.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/graph/nearest_name.h"
#include "common/metrics/metric_set.h"

namespace mu {
namespace {

constexpr char kModelsHead[] =
    "# Models\n\nMade by `coordinator models --markdown` from the models themselves; do not edit "
    "it.\n\nOne of these is the key below `model` in a [job file](../job_file.md#model); what "
    "stands in its table are the keys below that. `features.rows` is the key `rows` of each item "
    "of the list `features`. `coordinator describe MODEL` prints the same for one model, also for "
    "those of your own program.\n";

constexpr char kMetricsHead[] =
    "# Metrics\n\nMade by `coordinator metrics --markdown` from the table of metrics; do not edit "
    "it.\n\nThe names are those of [`evaluation.metrics`](../job_file.md#evaluation) in a job file "
    "and of `eval` in the [report](../report.md). What stands behind the `@` is an example: the "
    "number of first places, or a threshold (0.5 where it is left out).\n\nAll of them are the "
    "same for any order of the records, and for any number of workers. A metric that is not "
    "defined, such as an AUC without positive labels, is `null` in the report, with a warning that "
    "says why. `better` says which value early stopping and `keep_best` prefer. Records of a group "
    "with equal scores have no order, nor have classes of equal probability: metrics of ranks are "
    "then the mean over all their orders, so a model that gives all the same score gets what a "
    "random order gets. `accuracy` alone takes the lowest of the most probable classes.\n";

constexpr Task kTasks[] = {Task::kBinaryClassification, Task::kRegression, Task::kMultiClass,
                           Task::kRanking};

const char* MeaningOf(Task task) {
  switch (task) {
    case Task::kBinaryClassification:
      return "The model predicts the probability that the label is 1; labels are 0 and 1.";
    case Task::kRegression:
      return "The model predicts a number; the label is one.";
    case Task::kMultiClass:
      return "The model predicts the probability of each class; the label is the class, from 0.";
    case Task::kRanking:
      return "The model gives each record a score, any number, which orders the records of a "
             "group; the label is 1 for what is relevant to the group, else 0.";
  }
  return "";
}

const char* BetterText(Better better) {
  switch (better) {
    case Better::kGreater:
      return "greater";
    case Better::kLess:
      return "less";
    case Better::kNearOne:
      return "near 1";
  }
  return "";
}

// Names as a job file has them, with an example of their parameter.
std::string Written(const MetricDef& def) {
  switch (def.parameter) {
    case MetricParameter::kNone:
      return def.name;
    case MetricParameter::kK:
      return absl::StrCat(def.name, "@10");
    case MetricParameter::kThreshold:
      return absl::StrCat(def.name, "@0.3");
  }
  return "";
}

// Lines of cells, as wide as the widest of their column; the last is not filled up.
std::string Aligned(const std::vector<std::vector<std::string>>& lines) {
  std::vector<size_t> widths;
  for (const auto& line : lines) {
    widths.resize(std::max(widths.size(), line.size()));
    for (size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], line[i].size());
  }
  std::string text;
  for (const auto& line : lines) {
    for (size_t i = 0; i < line.size(); ++i) {
      absl::StrAppend(&text, line[i]);
      if (i + 1 < line.size()) text.append(widths[i] - line[i].size() + 2, ' ');
    }
    text += '\n';
  }
  return text;
}

}  // namespace

std::string ModelList(const ModelRegistry& models) {
  std::vector<std::vector<std::string>> lines;
  for (const std::string& name : models.Names()) {
    const ModelDoc* const doc = models.Doc(name);
    lines.push_back({name, doc == nullptr ? "(it does not describe itself)" : doc->what});
  }
  return Aligned(lines);
}

absl::StatusOr<std::string> DescribeModel(const ModelRegistry& models, const std::string& name) {
  if (name.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("name a model, as in `coordinator describe ",
                                                   models.Names().front(), "`; there are ",
                                                   absl::StrJoin(models.Names(), ", ")));
  }
  if (!models.Has(name)) {
    const std::string nearest = NearestName(name, models.Names());
    return absl::InvalidArgumentError(absl::StrCat(
        "there is no model `", name, "`; ",
        nearest.empty() ? absl::StrCat("there are ", absl::StrJoin(models.Names(), ", "))
                        : absl::StrCat("did you mean `", nearest, "`?")));
  }
  const ModelDoc* const doc = models.Doc(name);
  if (doc == nullptr) {
    return absl::StrCat(name,
                        ": its own code reads its keys and does not describe them "
                        "(mu::ModelRegistry::RegisterOptions would)\n");
  }
  std::vector<std::vector<std::string>> lines = {{"KEY", "TYPE", "DEFAULT", "MEANING"}};
  for (const ModelKeyDoc& key : doc->keys) {
    lines.push_back({key.key, key.type, key.default_value.empty() ? "required" : key.default_value,
                     key.meaning});
  }
  return absl::StrCat(name, ": ", doc->what, "\n\n",
                      doc->keys.empty() ? "It has no keys.\n" : Aligned(lines));
}

std::string ModelsPage(const ModelRegistry& models) {
  std::string text = kModelsHead;
  for (const std::string& name : models.Names()) {
    const ModelDoc* const doc = models.Doc(name);
    if (doc == nullptr) continue;
    absl::StrAppend(&text, "\n## ", name, "\n\n", doc->what, ".\n");
    if (!doc->keys.empty()) absl::StrAppend(&text, "\n", KeyTable(*doc));
  }
  return text;
}

std::string MetricList() {
  std::vector<std::vector<std::string>> lines = {{"TASK", "METRIC", "MEANING"}};
  for (const MetricDef& def : MetricTable())
    lines.push_back({std::string(TaskName(def.task)), Written(def), def.doc});
  return Aligned(lines);
}

std::string MetricsPage() {
  std::string text = kMetricsHead;
  for (const Task task : kTasks) {
    std::string name(TaskName(task));
    name[0] = static_cast<char>(name[0] - 'a' + 'A');
    absl::StrAppend(&text, "\n## ", name, "\n\n", MeaningOf(task),
                    " Without `evaluation.metrics`: `",
                    absl::StrJoin(DefaultMetrics(task, true), "`, `"),
                    "`; those of groups only if there is one.\n\n"
                    "| metric | better | needs `evaluation.group` | weights enter | meaning |\n"
                    "|---|---|---|---|---|\n");
    for (const MetricDef& def : MetricTable()) {
      if (def.task != task) continue;
      absl::StrAppend(&text, "| `", Written(def), "` | ", BetterText(def.better), " | ",
                      def.needs_group ? "yes" : "no", " | ", def.takes_weights ? "yes" : "no",
                      " | ", def.doc, " |\n");
    }
  }
  return text;
}

}  // namespace mu
