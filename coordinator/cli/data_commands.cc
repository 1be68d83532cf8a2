// stats and make-vocab: commands that look at a job's data and start nothing.
#include <algorithm>
#include <cstdio>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/base/status.h"
#include "common/env/compression.h"
#include "common/env/file.h"
#include "common/env/file_identity.h"
#include "common/graph/dataset_schema.h"
#include "common/graph/nearest_name.h"
#include "common/records/column_stats.h"
#include "common/records/data_scan.h"
#include "common/records/text_counts.h"
#include "common/records/vocabulary.h"
#include "coordinator/cli/commands.h"
#include "coordinator/cli/job_file.h"
#include "coordinator/cli/output_check.h"
#include "coordinator/cli/stats_table.h"
#include "coordinator/frontend/model_registry.h"
#include "coordinator/training/exit_code.h"
#include "coordinator/training/job_data.h"

namespace mu {
namespace {

constexpr uint32_t kRowsAtOnce = 1024;

int Fail(const absl::Status& status) {
  absl::FPrintF(stderr, "error: %s\n", std::string(status.message()));
  return ExitCodeOf(status);
}

// What --out must not replace. make-vocab may make the vocabulary of its column anew.
std::vector<InputFile> InputsOfCommand(const CliOptions& options, const muster::JobProto& job) {
  std::vector<InputFile> inputs = InputsOf(options.job_file, job);
  if (options.column.empty()) return inputs;
  for (const auto* source : {&job.data().train(), &job.data().eval(), &job.data().predict()}) {
    for (const auto& column : source->columns()) {
      if (column.name() != options.column || column.vocabulary().empty()) continue;
      std::erase_if(inputs, [&](const InputFile& input) {
        return input.is_vocabulary && FileIdentity(input.path) == FileIdentity(column.vocabulary());
      });
    }
  }
  return inputs;
}

// The dataset of --data. Nothing, and all problems are told, if the job file has some there or
// --out cannot be written.
std::optional<pb::DatasetProto> DatasetOfJob(const CliOptions& options, const ModelRegistry& models,
                                             bool vocabularies_exist) {
  const bool eval = options.data_source == "eval", predict = options.data_source == "predict";
  ProblemList problems;
  const JobFile file = LoadJobFile(options.job_file,
                                   {.use = eval      ? JobUse::kEval
                                           : predict ? JobUse::kPredict
                                                     : JobUse::kTrain,
                                    .overrides = options.overrides,
                                    .models = models.Names(),
                                    .files_elsewhere = false,
                                    .vocabularies_exist = vocabularies_exist},
                                   &problems);
  CheckOutputs({{.place = Place{"--out"}, .path = options.out}}, InputsOfCommand(options, file.job),
               &problems);
  if (!problems.empty()) {
    absl::FPrintF(stderr, "%s", problems.ToString());
    return std::nullopt;
  }
  const DataPurpose purpose = eval      ? DataPurpose::kEval
                              : predict ? DataPurpose::kPredict
                                        : DataPurpose::kTrain;
  absl::StatusOr<pb::DatasetProto> dataset = DatasetOf(file.job, purpose);
  if (dataset.ok()) return *std::move(dataset);
  Fail(dataset.status());
  return std::nullopt;
}

// So that texts are counted which no vocabulary has yet.
void HashVocabularies(pb::DatasetProto* dataset) {
  FieldColumnList* const columns = MutableFieldColumnsOf(dataset);
  if (columns == nullptr) return;
  for (pb::CsvColumnProto& column : *columns) {
    if (column.kind() != pb::CsvColumnProto::VOCABULARY) continue;
    column.set_kind(pb::CsvColumnProto::HASH);
    column.set_buckets(1);
    column.clear_vocabulary_file();
    column.clear_oov_buckets();
    column.clear_missing_id();
  }
}

absl::StatusOr<int> ColumnIndex(const pb::DatasetProto& dataset, const std::string& name) {
  std::vector<std::string> names;
  for (const pb::CsvColumnProto& column : FieldColumnsOf(dataset)) {
    if (column.name() == name) return static_cast<int>(names.size());
    names.push_back(column.name());
  }
  return absl::InvalidArgumentError(
      names.empty() ? "only csv, jsonl and tfrecord have columns with a vocabulary"
                    : absl::StrCat("--column: ", dataset.name(), " has no column \"", name, "\"",
                                   DidYouMean(name, names)));
}

// A cross is computed from texts of other columns and has none itself.
absl::Status CheckHasTexts(const pb::CsvColumnProto& column) {
  if (column.kind() != pb::CsvColumnProto::CROSS) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "--column: ", column.name(),
      " is of kind cross, whose ids are hashes: it has no texts of its own, and takes no "
      "vocabulary; name one of the columns that it crosses: ",
      absl::StrJoin(column.of(), ", ")));
}

absl::Status NoGoodRecord(const pb::DatasetProto& dataset, const ScannedData& scanned) {
  return absl::InvalidArgumentError(absl::StrCat(
      dataset.name(), ": it has no good record",
      scanned.bad > 0 ? "; mend the files, or what the job says of them"
                      : ": the files are empty, or `records` keeps none of theirs; name files that "
                        "have some"));
}

}  // namespace

int RunStatsCommand(const CliOptions& options, const ModelRegistry& models) {
  std::optional<pb::DatasetProto> dataset = DatasetOfJob(options, models, true);
  if (!dataset.has_value()) return kExitBadJob;
  if (const absl::Status read = ReadVocabularies(&*dataset); !read.ok()) return Fail(read);
  ColumnSet columns(SchemaOf(*dataset), kRowsAtOnce);
  DatasetStats stats(*dataset);
  if (stats.observes()) columns.set_observer(&stats);
  std::vector<uint32_t> rows;
  const auto flush = [&] {
    stats.AddBatch(columns.Gather(rows));
    rows.clear();
    columns.Clear();
  };
  const absl::StatusOr<ScannedData> scanned = ScanData(*dataset, &columns, [&](bool good) {
    if (!good || stats.observes()) {
      columns.DropRow();
      good ? stats.KeepRecord() : stats.DropRecord();
      return;
    }
    rows.push_back(columns.rows());
    columns.CommitRow();
    if (columns.rows() == kRowsAtOnce) flush();
  });
  if (!scanned.ok()) return Fail(scanned.status());
  if (!rows.empty()) flush();
  absl::PrintF("%s", StatsTable(*scanned, stats.Summaries()));
  if (scanned->records == 0) {
    std::fflush(stdout);
    return Fail(NoGoodRecord(*dataset, *scanned));
  }
  if (options.out.empty()) return kExitDone;
  const absl::Status written = WriteFileAtomic(options.out, StatsJson(*scanned, stats.Summaries()));
  return written.ok() ? kExitDone : Fail(written);
}

int RunMakeVocabCommand(const CliOptions& options, const ModelRegistry& models) {
  std::optional<pb::DatasetProto> dataset = DatasetOfJob(options, models, false);
  if (!dataset.has_value()) return kExitBadJob;
  HashVocabularies(&*dataset);
  const absl::StatusOr<int> column = ColumnIndex(*dataset, options.column);
  if (!column.ok()) return Fail(column.status());
  if (const absl::Status texts = CheckHasTexts(FieldColumnsOf(*dataset).Get(*column)); !texts.ok())
    return Fail(texts);
  TextCounts counts(*column);
  ColumnSet row(SchemaOf(*dataset), 1);
  row.set_observer(&counts);
  const absl::StatusOr<ScannedData> scanned = ScanData(*dataset, &row, [&](bool good) {
    row.DropRow();
    good ? counts.KeepRecord() : counts.DropRecord();
  });
  if (!scanned.ok()) return Fail(scanned.status());
  if (scanned->records == 0) return Fail(NoGoodRecord(*dataset, *scanned));
  std::string lines;
  const auto frequent = counts.Frequent(options.min_count);
  for (const auto& [text, count] : frequent) absl::StrAppend(&lines, text, "\n");
  if (counts.distinct() == 0) {
    return Fail(absl::InvalidArgumentError(
        absl::StrCat("column ", options.column, " has no text in any of ", scanned->records,
                     " records: all are missing; check its `field` and `missing`")));
  }
  if (frequent.empty()) {
    return Fail(absl::InvalidArgumentError(
        absl::StrCat("column ", options.column, " has ", counts.distinct(), " texts, none of them ",
                     options.min_count, " times; lower --min_count")));
  }
  if (lines.size() > kMaxVocabularyBytes) {
    return Fail(absl::InvalidArgumentError(
        absl::StrCat("the ", frequent.size(), " texts have ", lines.size(),
                     " bytes, a vocabulary at "
                     "most ",
                     kMaxVocabularyBytes, "; raise --min_count, or hash the column")));
  }
  // What is called .gz or .zst is read as that.
  const absl::StatusOr<std::string> bytes = Compress(CompressionOfName(options.out), lines);
  if (!bytes.ok()) return Fail(bytes.status());
  if (const absl::Status written = WriteFileAtomic(options.out, *bytes); !written.ok())
    return Fail(written);
  absl::PrintF("%d of %d texts in %d records: %s\n", frequent.size(), counts.distinct(),
               scanned->records, options.out);
  if (counts.with_line_end() > 0)
    absl::PrintF("%d texts hold a line end and were left out\n", counts.with_line_end());
  return kExitDone;
}

}  // namespace mu
