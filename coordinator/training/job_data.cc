#include "coordinator/training/job_data.h"

#include <algorithm>
#include <set>
#include <string>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "common/graph/dataset_schema.h"
#include "coordinator/training/job_columns.h"

namespace mu {
namespace {

absl::Status FillCsv(const pb::SourceProto& source, const pb::ModelProto& model,
                     pb::CsvProto* csv) {
  csv->set_header(source.has_header() ? source.header() : true);
  csv->set_delimiter(source.has_delimiter() ? source.delimiter() : ",");
  csv->set_quote(source.has_quote() ? source.quote() : "\"");
  csv->set_trim(source.trim());
  csv->set_skip_lines(source.skip_lines());
  for (const auto& mark : source.missing()) csv->add_missing(mark);
  return FillColumns(source, model, csv->mutable_columns());
}

// Images, and labels where there are any.
void FillIdx(const pb::SourceProto& source, pb::DatasetProto* dataset) {
  constexpr uint32_t kSide = 28;  // of MNIST's images
  dataset->mutable_arrays()->set_container(pb::ArraysProto::IDX);
  pb::ArrayColumnProto* const image = dataset->mutable_arrays()->add_columns();
  image->set_name("image");
  image->set_dtype(pb::FLOAT32);
  image->set_scale(source.has_scale() ? source.scale() : 1.0f / 255);
  for (const uint32_t size : source.shape()) image->add_shape(size);
  if (source.shape().empty()) {
    image->add_shape(kSide);
    image->add_shape(kSide);
  }
  if (source.labels().empty()) return;
  pb::ArrayColumnProto* const label = dataset->mutable_arrays()->add_columns();
  label->set_name("label");
  label->set_dtype(pb::INT64);
  *dataset->add_companions()->mutable_files() = source.labels();
}

absl::Status FillNpy(const pb::SourceProto& source, pb::DatasetProto* dataset) {
  dataset->mutable_arrays()->set_container(pb::ArraysProto::NPY);
  for (const pb::JobColumnProto& from : source.columns()) {
    pb::ArrayColumnProto* const column = dataset->mutable_arrays()->add_columns();
    column->set_name(from.name());
    if (from.kind() != "number" && from.kind() != "id") {
      return absl::InvalidArgumentError(absl::StrCat(
          "column '", from.name(), "' has the unknown kind '", from.kind(), "'; use number or id"));
    }
    column->set_dtype(from.kind() == "id" ? pb::INT64 : pb::FLOAT32);
    for (const uint32_t size : from.shape()) column->add_shape(size);
    if (from.has_scale()) column->set_scale(from.scale());
    column->set_bound(from.buckets());
    if (column == &dataset->arrays().columns(0)) {
      *dataset->mutable_files() = from.files();
    } else {
      *dataset->add_companions()->mutable_files() = from.files();
    }
  }
  return absl::OkStatus();
}

absl::Status FillFormat(const pb::SourceProto& source, const pb::ModelProto& model,
                        pb::DatasetProto* dataset) {
  if (source.format() == "criteo_tsv") {
    dataset->mutable_criteo_tsv()->set_hash_buckets(BucketsOf(model, "ids"));
  } else if (source.format() == "csv") {
    return FillCsv(source, model, dataset->mutable_csv());
  } else if (source.format() == "libsvm") {
    dataset->mutable_libsvm()->set_features(source.features());
    *dataset->mutable_libsvm()->mutable_positive() = source.positive();
  } else if (source.format() == "libffm") {
    dataset->mutable_libffm()->set_features(source.features());
    dataset->mutable_libffm()->set_fields(source.fields());
    *dataset->mutable_libffm()->mutable_positive() = source.positive();
  } else if (source.format() == "jsonl") {
    *dataset->mutable_jsonl()->mutable_missing() = source.missing();
    return FillColumns(source, model, dataset->mutable_jsonl()->mutable_columns());
  } else if (source.format() == "tfrecord") {
    return FillColumns(source, model, dataset->mutable_tfrecord()->mutable_columns());
  } else if (source.format() == "idx") {
    FillIdx(source, dataset);
  } else if (source.format() == "npy") {
    return FillNpy(source, dataset);
  } else {
    return absl::InvalidArgumentError(
        absl::StrCat("unknown format '", source.format(),
                     "'; use criteo_tsv, csv, libsvm, libffm, jsonl, tfrecord, idx or npy"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<pb::DatasetProto> DatasetOf(const pb::JobProto& job, DataPurpose purpose) {
  const pb::JobDataProto& data = job.data();
  const char* key = purpose == DataPurpose::kTrain  ? "train"
                    : purpose == DataPurpose::kEval ? "eval"
                                                    : "predict";
  const pb::SourceProto* source = nullptr;
  if (purpose == DataPurpose::kTrain && data.has_train()) source = &data.train();
  if (purpose == DataPurpose::kEval && data.has_eval()) source = &data.eval();
  // Predicting the evaluation's records is what most want to see first.
  if (purpose == DataPurpose::kPredict) {
    source = data.has_predict() ? &data.predict() : data.has_eval() ? &data.eval() : nullptr;
  }
  if (source == nullptr) {
    return absl::NotFoundError(
        absl::StrCat("the job has no data.", key, "; add it to the job file"));
  }
  if (source == &data.eval()) key = "eval";  // also to predict
  pb::DatasetProto dataset;
  dataset.set_name(absl::StrCat("data.", key));
  if (const absl::Status format = FillFormat(*source, job.model(), &dataset); !format.ok())
    return Annotate(format, absl::StrCat("data.", key));
  for (const auto& file : source->files()) dataset.add_files(file);
  if (source->has_records()) {
    dataset.mutable_records()->set_modulo(source->records().modulo());
    for (uint32_t keep : source->records().keep()) dataset.mutable_records()->add_keep(keep);
  }
  const pb::TrainingProto& training = job.training();
  const bool train = purpose == DataPurpose::kTrain;
  dataset.set_batch_size(!train && training.eval_batch_size() > 0 ? training.eval_batch_size()
                                                                  : training.batch_size());
  dataset.set_epochs(train ? std::max<uint32_t>(1, training.epochs()) : 1);
  // The order of records matters to training only.
  if (train) dataset.set_shuffle_records(source->shuffle().records());
  if (train && source->visitation() == "none") {
    dataset.set_visitation(pb::VISITATION_NONE);
    dataset.set_epochs(0);  // a worker that is quicker than others begins again
  }
  dataset.set_seed(job.seed());
  dataset.set_on_bad_record(source->on_bad_record() == "skip" ? pb::ON_BAD_RECORD_SKIP
                                                              : pb::ON_BAD_RECORD_FAIL);
  return dataset;
}

void BoundIds(const Model& model, pb::DatasetProto* dataset) {
  const std::map<std::string, int64_t> bounds = model.IdBounds();
  const auto bounded = [&](const std::string& name, int64_t own) {
    const auto bound = bounds.find(name);
    return bound == bounds.end() || (own > 0 && own <= bound->second) ? own : bound->second;
  };
  if (FieldColumnList* const columns = MutableFieldColumnsOf(dataset); columns != nullptr) {
    for (pb::CsvColumnProto& column : *columns) {
      if (column.kind() == pb::CsvColumnProto::ID)
        column.set_buckets(bounded(column.name(), column.buckets()));
    }
  }
  if (!dataset->has_arrays()) return;
  for (pb::ArrayColumnProto& column : *dataset->mutable_arrays()->mutable_columns()) {
    if (column.dtype() == pb::INT64) column.set_bound(bounded(column.name(), column.bound()));
  }
}

void DropLabels(const Model& model, const std::vector<std::string>& wanted,
                pb::DatasetProto* dataset) {
  std::set<std::string> labels;
  for (const pb::ColumnSchema& column : model.ColumnsFor(DataPurpose::kEval))
    labels.insert(column.name());
  for (const pb::ColumnSchema& column : model.ColumnsFor(DataPurpose::kPredict))
    labels.erase(column.name());
  for (const std::string& column : wanted) labels.erase(column);
  if (labels.contains("label")) {
    if (dataset->has_criteo_tsv()) dataset->mutable_criteo_tsv()->set_unlabelled(true);
    if (dataset->has_libsvm()) dataset->mutable_libsvm()->set_unlabelled(true);
    if (dataset->has_libffm()) dataset->mutable_libffm()->set_unlabelled(true);
  }
  if (FieldColumnList* const fields = MutableFieldColumnsOf(dataset); fields != nullptr) {
    const bool crossed = absl::c_any_of(*fields, [&](const pb::CsvColumnProto& column) {
      return absl::c_any_of(column.of(), [&](const auto& of) { return labels.contains(of); });
    });
    if (crossed) return;
    const auto rest = std::remove_if(
        fields->begin(), fields->end(),
        [&](const pb::CsvColumnProto& column) { return labels.contains(column.name()); });
    if (rest != fields->begin()) fields->erase(rest, fields->end());
  }
  if (!dataset->has_arrays()) return;
  // The first column's files are the dataset's own.
  auto* const arrays = dataset->mutable_arrays()->mutable_columns();
  for (int i = arrays->size() - 1; i >= 1; --i) {
    if (!labels.contains(arrays->Get(i).name())) continue;
    arrays->DeleteSubrange(i, 1);
    dataset->mutable_companions()->DeleteSubrange(i - 1, 1);
  }
}

absl::Status WithTexts(const std::vector<std::string>& wanted, pb::DatasetProto* dataset) {
  FieldColumnList* const columns = MutableFieldColumnsOf(dataset);
  if (columns == nullptr) return absl::OkStatus();
  const FieldColumnList read = *columns;
  for (const pb::CsvColumnProto& column : read) {
    if (!absl::c_linear_search(wanted, column.name())) continue;
    if (column.kind() == pb::CsvColumnProto::CROSS || HasSeveralValues(column)) continue;
    const std::string taken = TextColumnOf(column.name());
    if (absl::c_any_of(read, [&](const auto& other) { return other.name() == taken; })) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--columns: the text of column ", column.name(), " takes the name ", taken, ", which ",
          dataset->name(), " has as a column of its own; ", kNameClashRemedy));
    }
    pb::CsvColumnProto* const text = columns->Add();
    text->set_name(taken);
    text->set_kind(pb::CsvColumnProto::TEXT);
    const bool by_index = dataset->has_csv() && column.field().empty() && column.index() >= 0;
    text->set_index(by_index ? column.index() : -1);
    if (!by_index) text->set_field(column.field().empty() ? column.name() : column.field());
  }
  return absl::OkStatus();
}

}  // namespace mu
