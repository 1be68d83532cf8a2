// Mistakes in the keys of formats and columns: the table says which key is where, the rest is
// rules.
#include "coordinator/cli/data_keys.h"

#include <gtest/gtest.h>

#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/status.h"
#include "coordinator/cli/job_validation.h"
#include "tests/coordinator/cli/job_text.h"

namespace mu {
namespace {

// The problems of a source with these lines (from line 3, column 4), without their places.
std::string Problems(const std::string& source) {
  const std::string job = absl::StrCat("name: x\ndata: {train: {", source,
                                       "}}\nmodel: {mine: {}}\noptimizer: {sgd: {learning_rate: "
                                       "0.1}}\n");
  std::string all;
  ProblemList problems;
  ParseJob(job, "job.yaml", ".", {.use = JobUse::kCheck, .models = {"mine"}}, &problems);
  for (absl::string_view line : absl::StrSplit(problems.ToString(), '\n', absl::SkipEmpty())) {
    EXPECT_TRUE(absl::StartsWith(line, "job.yaml:2:")) << line;
    line.remove_prefix(std::min(line.size(), line.find("data.train.") + 11));
    absl::StrAppend(&all, line, "\n");
  }
  return all;
}

constexpr char kFile[] = "files: [tests/coordinator/cli/CMakeLists.txt]";

std::string Column(const std::string& format, const std::string& column) {
  return Problems(absl::StrCat("format: ", format, ", ", kFile, ", columns: [{name: x, ", column,
                               "}, {name: y, kind: id}]"));
}

TEST(DataKeysTest, EveryKeyIsInTheMessageAndTheOtherWayRound) {
  std::set<std::string> source_keys, column_keys;
  for (const SourceKeyInfo& info : SourceKeys()) source_keys.insert(info.key);
  for (const ColumnKeyInfo& info : ColumnKeys()) column_keys.insert(info.key);
  const std::set<std::string> of_all_formats = {"format",  "files",         "shuffle",
                                                "records", "on_bad_record", "visitation"};
  for (int i = 0; i < pb::SourceProto::descriptor()->field_count(); ++i) {
    const std::string& name = pb::SourceProto::descriptor()->field(i)->name();
    EXPECT_EQ(source_keys.erase(name) + of_all_formats.count(name), 1u) << name;
  }
  for (int i = 0; i < pb::JobColumnProto::descriptor()->field_count(); ++i) {
    const std::string& name = pb::JobColumnProto::descriptor()->field(i)->name();
    EXPECT_EQ(column_keys.erase(name), 1u) << name;
  }
  EXPECT_TRUE(source_keys.empty() && column_keys.empty());
}

TEST(DataKeysTest, NamesAreWrittenAsALine) {
  EXPECT_EQ(FormatNames(kCsvBit), "csv");
  EXPECT_EQ(FormatNames(kFieldFormats), "csv, jsonl and tfrecord");
  EXPECT_EQ(KindNames(kNumberBit | kIdBit, "or"), "number or id");
  EXPECT_EQ(FormatBitOf("npy"), unsigned{kNpyBit});
  EXPECT_EQ(KindBitOf("text"), 0u);
}

TEST(DataKeysTest, GoodSources) {
  EXPECT_EQ(Column("csv", "kind: hash, separator: \"|\", length: 5, truncate: begin, padding: 0"),
            "");
  EXPECT_EQ(Column("jsonl", "kind: id, list: true, weight_field: w"), "");
  EXPECT_EQ(Column("tfrecord", "kind: number, list: true, shape: [2, 3], mean: 1, stddev: 2"), "");
  EXPECT_EQ(Column("csv", "kind: class, classes: [a, b], missing_id: 2"), "");
  EXPECT_EQ(Column("csv",
                   "kind: vocabulary, oov_buckets: 0, vocabulary: "
                   "tests/coordinator/cli/CMakeLists.txt"),
            "");
  EXPECT_EQ(Column("csv", "kind: bucket, boundaries: [1, 2]}, {name: z, kind: cross, of: [x, y]"),
            "");
  EXPECT_EQ(Problems(absl::StrCat("format: idx, ", kFile,
                                  ", labels: [tests/coordinator/cli/CMakeLists.txt], shape: [2]")),
            "");
  EXPECT_EQ(Problems("format: npy, columns: [{name: x, kind: number, files: "
                     "[tests/coordinator/cli/CMakeLists.txt], shape: [2]}]"),
            "");
}

TEST(DataKeysTest, KeysOfOtherFormatsAndKinds) {
  EXPECT_EQ(Column("jsonl", "kind: id, index: 1"),
            "columns[0].index` is for format csv, not for jsonl; remove it\n");
  EXPECT_EQ(Column("jsonl", "kind: id, separator: \"|\""),
            "columns[0].separator` is for format csv, not for jsonl; write list: true\n");
  EXPECT_EQ(Column("csv", "kind: id, list: true"),
            "columns[0].list` is for format jsonl and tfrecord, not for csv; remove it\n");
  EXPECT_EQ(Column("csv", "kind: number, buckets: 5"),
            "columns[0].buckets` is for columns of kind id, hash and cross; remove it\n");
  EXPECT_EQ(Column("csv", "kind: id, classes: [a]"),
            "columns[0].classes` is for columns of kind class; remove it\n");
  EXPECT_EQ(
      Column("csv", "kind: hash, missing_id: 1"),
      "columns[0].missing_id` is for columns of kind id, class, vocabulary and bucket; remove "
      "it\n");
  EXPECT_EQ(Column("csv", "kind: id, scale: 2"),
            "columns[0].scale` is for format npy, not for csv; remove it\n");
  EXPECT_EQ(Problems(absl::StrCat("format: jsonl, trim: true, ", kFile,
                                  ", columns: [{name: x, kind: id}]")),
            "trim` is for format csv, not for jsonl; remove it\n");
  EXPECT_EQ(
      Problems(
          absl::StrCat("format: csv, positive: [a], ", kFile, ", columns: [{name: x, kind: id}]")),
      "positive` is for format libsvm and libffm, not for csv; write it in the label's column\n");
}

TEST(DataKeysTest, ColumnsThatTakeOneName) {
  EXPECT_EQ(
      Column("jsonl", "kind: id, list: true, buckets: 7}, {name: x.weights, kind: number"),
      "columns[1].name` is `x.weights`, but the columns x and x.weights both take the name "
      "x.weights: a list takes NAME.values, NAME.splits and NAME.weights, a sequence NAME.length; "
      "rename one of the two; its `field` says what it is read from\n");
  const auto begins = [](const std::string& problems, const std::string& text) {
    EXPECT_EQ(problems.substr(0, text.size()), text) << problems;
  };
  begins(Column("csv", "kind: id, separator: \"|\"}, {name: x.values, kind: hash"),
         "columns[1].name` is `x.values`, but the columns x and x.values both take the name "
         "x.values: ");
  begins(Column("tfrecord", "kind: number, list: true, length: 3}, {name: x.length, kind: id"),
         "columns[1].name` is `x.length`, but ");
  // The list may be the second one.
  begins(Problems(absl::StrCat("format: jsonl, ", kFile,
                               ", columns: [{name: x.splits, kind: id}, {name: x, kind: id, list: "
                               "true}]")),
         "columns[1].name` is `x`, but the columns x.splits and x both take the name x.splits: ");
  EXPECT_EQ(Column("jsonl", "kind: id}, {name: x.values, kind: id"), "");
  EXPECT_EQ(Column("jsonl", "kind: number, list: true, shape: [2]}, {name: x.length, kind: id"),
            "");
}

TEST(DataKeysTest, RulesOfColumns) {
  EXPECT_EQ(Column("csv", "kind: class"),
            "columns[0].classes` is missing: it must name the texts in the order of their indices; "
            "write for example [no, yes]\n");
  EXPECT_EQ(Column("csv", "kind: class, classes: [a, b, a]"),
            "columns[0].classes[2]` is `a` a second time; remove it\n");
  EXPECT_EQ(Column("csv", "kind: vocabulary"),
            "columns[0].vocabulary` is missing: it must name a file with one text a line; "
            "`coordinator make-vocab` writes one\n");
  EXPECT_TRUE(absl::StrContains(
      Problems(absl::StrCat("format: csv, ", kFile,
                            ", columns: [{name: x, kind: vocabulary, vocabulary: nowhere.txt}]")),
      "there is no file ./nowhere.txt"));
  EXPECT_EQ(
      Column("csv", "kind: bucket, boundaries: [1, 1]"),
      "columns[0].boundaries[1]` must be above the one before it; write them in growing order, "
      "each once\n");
  EXPECT_EQ(Column("csv", "kind: cross, of: [y]"),
            "columns[0].of` must name at least two columns; write for example [age, job]\n");
  EXPECT_EQ(
      Column("csv", "kind: cross, of: [y, z]"),
      "columns[0].of[1]` is `z`, which is no column; name columns of this list; add one for a "
      "field that is in none\n");
  EXPECT_EQ(
      Column("csv", "kind: id, separator: \"|\"}, {name: z, kind: cross, of: [x, y]"),
      "columns[1].of[0]` is `x`, which has several values or is a cross; cross columns of one "
      "value\n");
  EXPECT_EQ(Column("csv", "kind: id, length: 4"),
            "columns[0].length` is for a field of several values; add `separator`\n");
  EXPECT_EQ(Column("jsonl", "kind: id, padding: 4"),
            "columns[0].padding` is for sequences; add `length`\n");
  EXPECT_EQ(Column("jsonl", "kind: id, list: true, length: 0"),
            "columns[0].length` must be above 0; leave it out for a list of any length\n");
  EXPECT_EQ(Column("jsonl", "kind: id, list: true, length: 3, truncate: middle"),
            "columns[0].truncate` must be end or begin, not `middle`\n");
  EXPECT_EQ(
      Column("jsonl", "kind: number, list: true"),
      "columns[0].list` makes a list, but a list of numbers has a fixed size; add shape: [N], "
      "or length: N for a sequence\n");
  EXPECT_EQ(
      Column("csv", "kind: number, stddev: 0"),
      "columns[0].stddev` must be above 0; a column whose values are all equal tells nothing: "
      "leave it out\n");
  EXPECT_EQ(Column("csv", "kind: number, mean: -1e39"),
            "columns[0].mean` must be within a float's range (up to 3.4e38), not -1e+39\n");
  EXPECT_EQ(Column("csv", "kind: number, stddev: 1e-60"),
            "columns[0].stddev` must be within a float's range (from 1e-45), not 1e-60\n");
  EXPECT_EQ(Column("csv", "kind: bucket, boundaries: [1, 1e39]"),
            "columns[0].boundaries[1]` must be within a float's range (up to 3.4e38), not 1e+39\n");
  EXPECT_EQ(Column("csv", "kind: id, separator: \"|\", weight_separator: \"|\""),
            "columns[0].weight_separator` must be one character, another than `delimiter` and "
            "`separator`; write for example \"|\"\n");
  EXPECT_EQ(Problems("format: npy, files: [a], columns: [{name: x, kind: number}]"),
            "files` is not for format npy; write `files` in each column: a column has files of its "
            "own\n"
            "columns[0].files` is missing: it names no files; write a list of paths or globs\n");
  EXPECT_EQ(Problems(absl::StrCat("format: idx, ", kFile)),
            "labels` is missing: it names no files of labels; list them in the order of `files`\n");
}

}  // namespace
}  // namespace mu
