#include "coordinator/training/trained_columns.h"

#include <map>
#include <optional>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "common/base/number_text.h"
#include "common/base/status.h"
#include "common/env/file.h"
#include "common/graph/dataset_schema.h"
#include "coordinator/cluster/checkpoint_manifest.h"
#include "coordinator/cluster/followed_checkpoints.h"
#include "coordinator/training/job_data.h"
#include "coordinator/training/job_record.h"
#include "coordinator/training/run_status.h"

namespace mu {
namespace {

// Two numbers that differ do not look equal.
std::string ToText(double value) { return NumberText(value); }
std::string ToText(float value) { return absl::StrFormat("%.9g", value); }

// What the ids of a column mean: two that differ in it must not share a table.
std::string MeaningOf(const pb::CsvColumnProto& column) {
  const std::string seed = column.has_seed() ? absl::StrCat(" with seed ", column.seed()) : "";
  switch (column.kind()) {
    case pb::CsvColumnProto::HASH:
      return absl::StrCat("hash into ", column.buckets(), seed);
    case pb::CsvColumnProto::CROSS:
      return absl::StrCat("cross of ", absl::StrJoin(column.of(), " and "), " into ",
                          column.buckets(), seed);
    case pb::CsvColumnProto::CLASS:
      return absl::StrCat("class of ", absl::StrJoin(column.classes(), ", "));
    case pb::CsvColumnProto::VOCABULARY:
      return absl::StrCat("vocabulary ", column.vocabulary_file(), " with ", column.oov_buckets(),
                          " more");
    case pb::CsvColumnProto::BUCKET:
      return absl::StrCat("bucket of ", absl::StrJoin(column.boundaries(), ", ",
                                                      [](std::string* text, double boundary) {
                                                        absl::StrAppend(text, ToText(boundary));
                                                      }));
    case pb::CsvColumnProto::NUMBER:
      return "number";
    case pb::CsvColumnProto::LABEL:
      return "label";
    default:
      return "id";
  }
}

// Empty: the two mean the same.
std::string OtherMeaning(const pb::CsvColumnProto& column, const pb::CsvColumnProto& trained,
                         const std::string& where) {
  if (MeaningOf(column) == MeaningOf(trained)) return "";
  return absl::StrCat("is ", MeaningOf(column), ", in ", where, " ", MeaningOf(trained),
                      ": its values would be other ids than those that were trained");
}

// What a missing field becomes; empty: the record is bad, so nothing was trained for it.
std::string MissingIdOf(const pb::CsvColumnProto& column) {
  if (column.required() || HasSeveralValues(column)) return "";
  if (column.kind() == pb::CsvColumnProto::HASH || column.kind() == pb::CsvColumnProto::CROSS)
    return "";
  if (column.has_missing_id()) return absl::StrCat(column.missing_id());
  if (column.kind() == pb::CsvColumnProto::BUCKET)
    return absl::StrCat(column.boundaries_size() + 1);
  const bool out_of_vocabulary =
      column.kind() == pb::CsvColumnProto::VOCABULARY && column.oov_buckets() > 0;
  return out_of_vocabulary ? "the number of texts" : "";
}

// By key: how the column makes values of what is written. A key that decides nothing is not there.
std::map<std::string, std::string> RulesOf(const pb::CsvColumnProto& column) {
  std::map<std::string, std::string> rules;
  const bool sequence = column.length() > 0;
  if (column.kind() == pb::CsvColumnProto::NUMBER) {
    rules["mean"] = ToText(column.has_mean() ? column.mean() : 0);
    rules["stddev"] = ToText(column.has_stddev() ? column.stddev() : 1);
    if (sequence || !column.required()) rules["missing_value"] = ToText(column.missing_value());
  }
  if (IsIds(column)) {
    if (const std::string id = MissingIdOf(column); !id.empty()) rules["missing_id"] = id;
    if (sequence) rules["padding"] = absl::StrCat(column.padding());
  }
  if (sequence)
    rules["truncate"] = column.truncate() == pb::CsvColumnProto::TRUNCATE_BEGIN ? "begin" : "end";
  return rules;
}

using Fingerprints = std::map<std::string, std::string>;

// Of two vocabularies whose texts are known, whether these are the same, wherever the files lie.
// nullopt: it is not known.
std::optional<bool> SameTexts(const std::string& column, const Fingerprints& now,
                              const Fingerprints& trained) {
  const auto one = now.find(column), other = trained.find(column);
  if (one == now.end() || other == trained.end()) return std::nullopt;
  return one->second == other->second;
}

// What is wrong with a column that is not as it was trained; empty: nothing.
std::string DifferenceOf(const pb::CsvColumnProto& column, pb::CsvColumnProto trained,
                         const Fingerprints& vocabularies, const Fingerprints& trained_vocabularies,
                         const std::string& where) {
  if (IsIds(column) != IsIds(trained)) return "";  // the model refuses one of them
  if (column.kind() == pb::CsvColumnProto::VOCABULARY && trained.kind() == column.kind()) {
    const std::optional<bool> same = SameTexts(column.name(), vocabularies, trained_vocabularies);
    if (same == false) {
      return absl::StrCat("is vocabulary ", column.vocabulary_file(),
                          ", whose texts are not those that ", trained.vocabulary_file(),
                          " had in ", where,
                          ": texts would be other ids than those that were trained");
    }
    if (same == true) trained.set_vocabulary_file(column.vocabulary_file());
  }
  if (IsIds(column)) {
    const std::string meaning = OtherMeaning(column, trained, where);
    if (!meaning.empty()) return meaning;
  }
  const std::map<std::string, std::string> before = RulesOf(trained);
  std::vector<std::string> others;
  for (const auto& [key, value] : RulesOf(column)) {
    const auto was = before.find(key);
    if (was == before.end() || was->second == value) continue;
    others.push_back(absl::StrCat("`", key, "` ", value, " instead of ", was->second));
  }
  if (others.empty()) return "";
  return absl::StrCat("has ", absl::StrJoin(others, ", "), " as in ", where,
                      ": its values would be others than those that were trained");
}

// The same of a column that the model reads through crosses only. These take its bucket, of other
// kinds the text, whatever the column itself makes of it.
std::string DifferenceInCross(const pb::CsvColumnProto& column, const pb::CsvColumnProto& trained,
                              const std::string& where) {
  const bool takes_bucket = column.kind() == pb::CsvColumnProto::BUCKET;
  const bool took_bucket = trained.kind() == pb::CsvColumnProto::BUCKET;
  return takes_bucket || took_bucket ? OtherMeaning(column, trained, where) : "";
}

// The columns of which the crosses among `used` are made.
std::set<std::string> CrossedBy(const std::set<std::string>& used, const FieldColumnList& columns) {
  std::set<std::string> crossed;
  for (const pb::CsvColumnProto& column : columns) {
    if (column.kind() == pb::CsvColumnProto::CROSS && used.contains(column.name()))
      crossed.insert(column.of().begin(), column.of().end());
  }
  return crossed;
}

// Of numbers in arrays; files of another container may hold them otherwise.
std::vector<std::string> CompareArrays(const TrainedColumns& trained,
                                       const pb::DatasetProto& dataset,
                                       const std::set<std::string>& used) {
  std::vector<std::string> problems;
  const pb::ArraysProto& arrays = dataset.arrays();
  if (arrays.container() != trained.dataset.arrays().container()) return problems;
  const auto scale_of = [](const pb::ArrayColumnProto& column) {
    return ToText(column.has_scale() ? column.scale() : 1);
  };
  for (int i = 0; i < arrays.columns_size(); ++i) {
    const pb::ArrayColumnProto& column = arrays.columns(i);
    if (!used.contains(column.name())) continue;
    for (const pb::ArrayColumnProto& before : trained.dataset.arrays().columns()) {
      if (before.name() != column.name() || scale_of(before) == scale_of(column)) continue;
      // The images of idx are no column of the job file.
      const std::string key =
          arrays.container() == pb::ArraysProto::IDX ? "" : absl::StrCat(".columns[", i, "]");
      problems.push_back(absl::StrCat(
          dataset.name(), key, ".scale: column ", column.name(), " has `scale` ", scale_of(column),
          " instead of ", scale_of(before), " as in ", trained.where,
          ": its values would be others than those that were trained; write it as it is there"));
    }
  }
  return problems;
}

std::string RecordPath(const std::string& run) { return JoinPath(run, "job.json"); }

absl::StatusOr<JobRecord> RecordOf(const std::string& run) {
  if (!IsMarkedRun(run)) return ReadJobRecord(run);
  return absl::NotFoundError(
      absl::StrCat(run, " is a program's run, whatever job has trained there before"));
}

absl::StatusOr<TrainedColumns> ColumnsOf(const JobRecord& record, const std::string& run) {
  MU_ASSIGN_OR_RETURN(TrainedColumns trained, TrainedColumnsOf(record.job));
  // Not what the files have by now.
  if (!record.vocabularies.empty()) trained.vocabularies = record.vocabularies;
  trained.record = RecordPath(run);
  trained.where = absl::StrCat("data.train of ", trained.record);
  return trained;
}

// What somebody can do who knows what the checkpoint was trained with.
std::string CopyOutOf(const std::string& run) {
  return absl::StrCat("copy the checkpoint's folder to a place outside of ", run,
                      ", where only the job file says what was trained");
}

}  // namespace

absl::StatusOr<TrainedColumns> TrainedColumnsOf(const pb::JobProto& job) {
  TrainedColumns trained;
  MU_ASSIGN_OR_RETURN(trained.dataset, DatasetOf(job, DataPurpose::kTrain));
  trained.vocabularies = FingerprintsOf(trained.dataset);
  trained.model = job.model();
  return trained;
}

absl::StatusOr<TrainedColumns> TrainedColumnsOfRun(const std::string& directory) {
  const std::string run = BaseName(directory) == "checkpoints" ? DirectoryOf(directory) : directory;
  MU_ASSIGN_OR_RETURN(const JobRecord record, RecordOf(run));
  return ColumnsOf(record, run);
}

absl::StatusOr<TrainedColumns> TrainedColumnsOfCheckpoint(const std::string& named) {
  const std::string checkpoint = AbsolutePath(named).value_or(named);
  const std::string folder = DirectoryOf(checkpoint), run = DirectoryOf(folder);
  // Of a checkpoint that was copied, a job.json there need not be a run's.
  const bool in_run = BaseName(folder) == "checkpoints" || folder == FollowedFolder(run);
  const absl::StatusOr<JobRecord> record = RecordOf(run);
  if (absl::IsNotFound(record.status())) return record.status();
  if (!record.ok() && !in_run) {
    return absl::NotFoundError(
        absl::StrCat(checkpoint, " lies alone: ", record.status().message()));
  }
  if (!record.ok()) {
    // Its remedy is for who trains.
    const std::string why(absl::StripSuffix(record.status().message(), "; choose another job_dir"));
    return absl::Status(record.status().code(),
                        absl::StrCat(why, ": it is not known what ", checkpoint,
                                     " was trained with; ", CopyOutOf(run)));
  }
  MU_ASSIGN_OR_RETURN(const pb::CheckpointProto manifest, ReadManifest(checkpoint));
  if (manifest.epoch() >= record->first_epoch) return ColumnsOf(*record, run);
  if (!in_run) return absl::NotFoundError(absl::StrCat(checkpoint, " lies alone"));
  return absl::FailedPreconditionError(absl::StrCat(
      checkpoint, " is older than the run that ", RecordPath(run),
      " describes, which began after it: it is not known what the checkpoint was trained with; "
      "wait for the new run's first checkpoint, or ",
      CopyOutOf(run)));
}

std::set<std::string> ColumnsReadBy(const Model& model, DataPurpose purpose) {
  std::set<std::string> names;
  for (const pb::ColumnSchema& column : model.ColumnsFor(purpose)) {
    // Of a list the first part.
    names.insert(std::string(absl::StripSuffix(column.name(), ".values")));
  }
  return names;
}

std::vector<std::string> CompareColumns(const TrainedColumns& trained,
                                        const pb::DatasetProto& dataset,
                                        const Fingerprints& vocabularies,
                                        const std::set<std::string>& used) {
  std::vector<std::string> problems = CompareArrays(trained, dataset, used);
  const FieldColumnList& columns = FieldColumnsOf(dataset);
  const std::set<std::string> crossed = CrossedBy(used, columns);
  for (int i = 0; i < columns.size(); ++i) {
    const pb::CsvColumnProto& column = columns[i];
    const bool is_used = used.contains(column.name());
    if (!is_used && !crossed.contains(column.name())) continue;
    for (const pb::CsvColumnProto& before : FieldColumnsOf(trained.dataset)) {
      if (before.name() != column.name()) continue;
      const std::string difference =
          is_used ? DifferenceOf(column, before, vocabularies, trained.vocabularies, trained.where)
                  : DifferenceInCross(column, before, trained.where);
      if (difference.empty()) continue;
      problems.push_back(absl::StrCat(dataset.name(), ".columns[", i, "]: column ", column.name(),
                                      " ", difference, "; write it as it is there"));
    }
  }
  return problems;
}

std::vector<std::string> ComparePositives(const TrainedColumns& trained,
                                          const pb::DatasetProto& dataset,
                                          const std::set<std::string>& used) {
  std::vector<std::string> notes;
  const std::vector<TextLabel> before = TextLabelsOf(trained.dataset);
  for (const TextLabel& label : TextLabelsOf(dataset)) {
    if (!used.contains(label.name)) continue;
    for (const TextLabel& was : before) {
      const bool shared = absl::c_any_of(*label.positive, [&](const std::string& text) {
        return absl::c_linear_search(*was.positive, text);
      });
      if (was.name != label.name || shared) continue;
      const std::string column =
          FieldColumnsOf(dataset).empty() ? "" : absl::StrCat(".columns[", label.index, "]");
      notes.push_back(absl::StrCat(
          dataset.name(), column, ".positive: column ", label.name, " is 1 for ",
          absl::StrJoin(*label.positive, ", "), ", in ", trained.where, " for ",
          absl::StrJoin(*was.positive, ", "),
          ": if that is not another way to write the same, labels are inverted, and so are "
          "metrics; write it as it is there"));
    }
  }
  return notes;
}

}  // namespace mu
