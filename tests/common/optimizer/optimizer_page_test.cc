// docs/reference/optimizers.md is what the table of optimizers says. After a change of the table:
//
//   MUSTER_WRITE_PAGES=1 build/tests/common_optimizer_test --gtest_filter=OptimizerPage.*
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tests/testing/example_optimizers.h"

namespace mu {
namespace {

using Range = OptimizerKey::Range;

constexpr char kBegin[] = R"(# Optimizers

Made by `tests/common/optimizer/optimizer_page_test.cc` from the table of optimizers (`common/optimizer/optimizer_table.cc`); do not edit it.

Parameter servers apply gradients, value by value, with single IEEE operations in `float32`. In the formulas, x is a value, g its gradient, r the learning rate; what a step computes from its own former value is a slot, which the server keeps beside x. A step changes only what it read: of a table, the rows that it looked up, and their slots. r is `learning_rate`, multiplied by [the schedule and the warm-up](../job_file.md#training) and by [`learning_rate_factor`](../job_file.md#parameters).

The headings are keys of [`optimizer`](../job_file.md#optimizer) in a job file. In C++ they are `mu::Sgd`, `mu::RowwiseAdagrad` and so on, with fields of the same names ([program.md](../program.md#variables-and-tables)). In checkpoints, `slot_0`, `slot_1`, ... are the slots in the order given here ([checkpoint_format.md](../checkpoint_format.md#slots)). A slot is a number for each value, unless it says otherwise.
)";

std::string RangeText(const OptimizerKey& key) {
  switch (key.range) {
    case Range::kAboveZero:
      return "above 0";
    case Range::kNotNegative:
      return "from 0";
    case Range::kBelowOne:
      return "from 0 to below 1";
    case Range::kFlag:
      return "true, false";
    case Range::kChoice:
      return absl::StrJoin(key.choices, ", ");
  }
  return "";
}

std::string SlotsText(const muster::OptimizerProto& proto) {
  constexpr uint64_t kWidth = 1000;
  std::vector<std::string> texts;
  for (const SlotLayout& slot : SlotsOf(proto, kWidth)) {
    texts.push_back(
        absl::StrCat("`", slot.name, "`", slot.width == kWidth ? "" : " (a number for each row)"));
  }
  return texts.empty() ? "none" : absl::StrJoin(texts, ", ");
}

std::string PageOf(const OptimizerKind& kind) {
  std::string page = absl::StrCat("\n## ", kind.name, "\n\n", kind.summary, ".\n\n");
  for (const char* formula : kind.formula) absl::StrAppend(&page, "    ", formula, "\n");
  absl::StrAppend(&page, "\n| key | values | default | meaning |\n|---|---|---|---|\n");
  for (const OptimizerKey& key : kind.keys) {
    const bool required = key.range == Range::kAboveZero && key.fallback == 0;
    absl::StrAppend(&page, "| `", key.name, "` | ", RangeText(key), " | ",
                    required ? "required" : DefaultText(key), " | ", key.meaning, " |\n");
  }
  // The examples of a kind begin with its defaults, and end with all that may be changed.
  std::vector<std::string> lines;
  std::set<std::string> known;
  for (const testing::ExampleOptimizer& example : testing::ExampleOptimizers()) {
    if (example.proto.kind_case() != kind.kind) continue;
    const std::string slots = SlotsText(example.proto);
    if (!known.insert(slots).second) continue;
    const bool defaults = lines.empty();
    lines.push_back(defaults ? absl::StrCat("Slots: ", slots)
                             : absl::StrCat("with `", example.changed, "`: ", slots));
  }
  absl::StrAppend(&page, "\n", absl::StrJoin(lines, "; "), ".\n");
  return page;
}

TEST(OptimizerPage, IsWhatTheTableSays) {
  std::string page = kBegin;
  for (const OptimizerKind& kind : AllOptimizers()) absl::StrAppend(&page, PageOf(kind));
  if (std::getenv("MUSTER_WRITE_PAGES") != nullptr) std::ofstream(MUSTER_OPTIMIZER_PAGE) << page;
  std::ostringstream there;
  there << std::ifstream(MUSTER_OPTIMIZER_PAGE).rdbuf();
  EXPECT_EQ(there.str(), page) << "write it anew, as the beginning of this file says";
}

}  // namespace
}  // namespace mu
