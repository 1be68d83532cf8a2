// docs/reference/ops.md is what the table of ops says.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "common/graph/print.h"
#include "coordinator/autodiff/gradient_table.h"
#include "coordinator/frontend/composed_ops.h"

namespace mu {
namespace {

constexpr char kPage[] = "docs/reference/ops.md";
constexpr char kBegin[] =
    R"(# Ops

Made by `tests/reference/ops_page_test.cc` from the table of ops (`common/graph`); do not edit it. To write it anew: `MUSTER_WRITE_PAGES=1 build/tests/reference_test`.

`x: T[...]` is an input, `->` leads to the result. "numeric" is float32, int32 or int64, "any" also uint8 and bool. `?` and -1 are sizes that are not known before run time; sizes that meet must be equal where both are known, and the kernel checks the rest. `=` gives an attribute's default; the others are required.

Gradient: "yes" if losses are differentiated through the op; "zero" if its result does not change with its inputs, or only in jumps; "end" where a path ends (sources and updates; the read parameter itself gets the gradient); "no" if a loss that reaches a parameter through the op is refused.

The calls of C++ programs have the names of the ops in CamelCase (`ReduceSum` for `reduce_sum`), and another name where that is a layer's (`LayerNormalize`, `Convolve2d`); `coordinator/frontend/ops.h`, `neural_ops.h` and `image_ops.h` list them.
)";

std::string Cell(const std::string& text) { return absl::StrReplaceAll(text, {{"|", "\\|"}}); }

std::string AttrsOf(const OpDef& def) {
  return absl::StrJoin(def.attrs, ", ", [](std::string* out, const AttrDef& attr) {
    absl::StrAppend(out, attr.name, ": ", AttrKindName(attr.kind));
    if (!attr.required) absl::StrAppend(out, " = ", AttrToText(attr.default_value));
  });
}

const char* GradientOf(const OpDef& def) {
  switch (AllGradients().KindOf(def.name)) {
    case GradientTable::Kind::kRule:
      return "yes";
    case GradientTable::Kind::kZero:
      return "zero";
    case GradientTable::Kind::kEnd:
      return "end";
    default:
      return "no";
  }
}

std::string Page() {
  std::string page = kBegin;
  for (const OpTable::Section& section : AllOps().sections()) {
    absl::StrAppend(&page, "\n## ", section.title, "\n\n");
    if (!section.intro.empty()) absl::StrAppend(&page, section.intro, "\n\n");
    absl::StrAppend(&page,
                    "| op | inputs and result | attributes | gradient | what it computes |\n"
                    "|---|---|---|---|---|\n");
    for (const std::string& name : section.ops) {
      const OpDef& def = *AllOps().Find(name);
      absl::StrAppend(&page, "| `", name, "` | ", Cell(def.signature), " | ", Cell(AttrsOf(def)),
                      " | ", GradientOf(def), " | ", Cell(def.doc), " |\n");
    }
  }
  absl::StrAppend(
      &page,
      "\n## Composed calls\n\nCalls of `coordinator/frontend/composed_ops.h` that are "
      "made of the ops above. They have no kernel and no gradient rule of their own.\n\n"
      "| call | made of | what it computes |\n|---|---|---|\n");
  for (const ComposedOp& op : ComposedOps()) {
    absl::StrAppend(&page, "| `", op.call, "` | ", op.made_of, " | ", Cell(op.doc), " |\n");
  }
  return page;
}

TEST(OpsPage, IsWhatTheTableSays) {
  const std::string page = Page();
  if (std::getenv("MUSTER_WRITE_PAGES") != nullptr) {
    std::ofstream file(kPage);
    file << page;
    ASSERT_TRUE(file.good());
    return;
  }
  std::ifstream file(kPage);
  std::stringstream there;
  there << file.rdbuf();
  const std::vector<std::string> is = absl::StrSplit(there.str(), '\n');
  const std::vector<std::string> wanted = absl::StrSplit(page, '\n');
  size_t line = 0;  // the first that differs
  while (line < is.size() && line < wanted.size() && is[line] == wanted[line]) ++line;
  EXPECT_TRUE(is == wanted) << kPage << ":" << line + 1
                            << " differs; write it anew: MUSTER_WRITE_PAGES=1 "
                               "build/tests/reference_test";
}

}  // namespace
}  // namespace mu
