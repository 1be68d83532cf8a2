// docs/reference/readers.md is what the tables of formats, columns and keys say.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "coordinator/cli/data_keys.h"

namespace mu {
namespace {

constexpr char kPage[] = "docs/reference/readers.md";
constexpr char kBegin[] =
    R"(# Readers

Made by `tests/reference/readers_page_test.cc` from the tables in `coordinator/cli/data_keys.cc`; do not edit it. To write it anew: `MUSTER_WRITE_PAGES=1 build/tests/reference_test`.

[job_file.md](../job_file.md#data) has the keys that sources of all formats have, and examples.
)";

std::string Cell(const char* text) { return absl::StrReplaceAll(text, {{"|", "\\|"}}); }

std::string Page() {
  std::string page =
      absl::StrCat(kBegin, "\n## Formats\n\n| `format` | a record | columns |\n|---|---|---|\n");
  for (const FormatInfo& format : Formats())
    absl::StrAppend(&page, "| `", format.name, "` | ", Cell(format.record), " | ",
                    Cell(format.columns), " |\n");
  absl::StrAppend(
      &page, "\nFiles of every format may be compressed (`.gz`, `.zst`).\n",
      "\n## Keys of a source\n\n| key | formats | meaning | default |\n|---|---|---|---|\n");
  for (const SourceKeyInfo& key : SourceKeys()) {
    absl::StrAppend(&page, "| `", key.key, "` | ", FormatNames(key.formats), " | ",
                    Cell(key.meaning), " | ", Cell(key.by_default), " |\n");
  }
  absl::StrAppend(&page, "\n## Keys of a column\n\n| key | formats | kinds | meaning | default |\n",
                  "|---|---|---|---|---|\n");
  for (const ColumnKeyInfo& key : ColumnKeys()) {
    absl::StrAppend(&page, "| `", key.key, "` | ", FormatNames(key.formats), " | ",
                    key.kinds == kAllKinds ? "all" : KindNames(key.kinds), " | ", Cell(key.meaning),
                    " | ", Cell(key.by_default), " |\n");
  }
  absl::StrAppend(&page, "\n## Kinds of columns\n\n| `kind` | meaning | type | a missing field |\n",
                  "|---|---|---|---|\n");
  for (const ColumnKindInfo& kind : ColumnKinds()) {
    absl::StrAppend(&page, "| `", kind.name, "` | ", Cell(kind.meaning), " | ", Cell(kind.type),
                    " | ", Cell(kind.missing), " |\n");
  }
  absl::StrAppend(
      &page,
      "\nA kind of type int64 has one of three forms:\n\n"
      "- One value: NAME int64 [batch].\n"
      "- A list (`separator`, `list`): NAME.values int64 [n], the values of all records, and "
      "NAME.splits int32 [batch + 1], where each record's begin; with weights also NAME.weights "
      "float32 [n], a name that is taken without weights, too. A missing field is an empty list.\n"
      "- A sequence (also `length`): NAME int64 [batch, length] and NAME.length int64 [batch]. A "
      "missing field is a sequence of length 0.\n");
  return page;
}

TEST(ReadersPage, IsWhatTheTablesSay) {
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
  EXPECT_EQ(there.str(), page) << "write it anew: MUSTER_WRITE_PAGES=1 build/tests/reference_test";
}

}  // namespace
}  // namespace mu
