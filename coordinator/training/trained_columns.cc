#include "coordinator/training/trained_columns.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "common/base/status.h"
#include "common/env/file.h"
#include "common/graph/dataset_schema.h"
#include "coordinator/cluster/checkpoint_manifest.h"
#include "coordinator/training/job_data.h"
#include "coordinator/training/job_record.h"

namespace mu {
namespace {

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
      return absl::StrCat("bucket of ", absl::StrJoin(column.boundaries(), ", "));
    default:
      return "id";
  }
}

// What is wrong with a column that is not as it was trained; empty: nothing.
std::string DifferenceOf(const pb::CsvColumnProto& column, const pb::CsvColumnProto& trained,
                         const std::string& where) {
  if (!IsIds(column) || !IsIds(trained) || MeaningOf(column) == MeaningOf(trained)) return "";
  return absl::StrCat("is ", MeaningOf(column), ", in ", where, " ", MeaningOf(trained),
                      ": its values would be other ids than those that were trained");
}

}  // namespace

absl::StatusOr<TrainedColumns> TrainedColumnsOf(const pb::JobProto& job) {
  TrainedColumns trained;
  MU_ASSIGN_OR_RETURN(trained.dataset, DatasetOf(job, DataPurpose::kTrain));
  return trained;
}

absl::StatusOr<TrainedColumns> TrainedColumnsOfRun(const std::string& directory) {
  const std::string run = BaseName(directory) == "checkpoints" ? DirectoryOf(directory) : directory;
  MU_ASSIGN_OR_RETURN(const JobRecord record, ReadJobRecord(run));
  MU_ASSIGN_OR_RETURN(TrainedColumns trained, TrainedColumnsOf(record.job));
  trained.where = absl::StrCat("data.train of ", JoinPath(run, "job.json"));
  return trained;
}

absl::StatusOr<TrainedColumns> TrainedColumnsOfCheckpoint(const std::string& checkpoint) {
  const std::string run = DirectoryOf(DirectoryOf(checkpoint));
  MU_ASSIGN_OR_RETURN(const JobRecord record, ReadJobRecord(run));
  MU_ASSIGN_OR_RETURN(const pb::CheckpointProto manifest, ReadManifest(checkpoint));
  if (manifest.epoch() < record.first_epoch) {
    return absl::NotFoundError(
        absl::StrCat(checkpoint, " is older than the run that ", run, " holds"));
  }
  return TrainedColumnsOfRun(run);
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
                                        const std::set<std::string>& used) {
  std::vector<std::string> problems;
  const FieldColumnList& columns = FieldColumnsOf(dataset);
  for (int i = 0; i < columns.size(); ++i) {
    const pb::CsvColumnProto& column = columns[i];
    if (!used.contains(column.name())) continue;
    for (const pb::CsvColumnProto& before : FieldColumnsOf(trained.dataset)) {
      if (before.name() != column.name()) continue;
      const std::string difference = DifferenceOf(column, before, trained.where);
      if (difference.empty()) continue;
      problems.push_back(absl::StrCat(dataset.name(), ".columns[", i, "]: column ", column.name(),
                                      " ", difference, "; write it as it is there"));
    }
  }
  return problems;
}

}  // namespace mu
