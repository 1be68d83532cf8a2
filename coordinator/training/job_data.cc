#include "coordinator/training/job_data.h"

#include "absl/strings/str_cat.h"
#include "coordinator/frontend/feature_models.h"

namespace mu {
namespace {

// Text columns without `buckets` and criteo data for a model that hashes itself get this many.
constexpr int64_t kDefaultHashBuckets = 100'000;

// The rows of the tables that a model of features has for a column; 0: none.
int64_t RowsOf(const pb::ModelProto& model, const std::string& column) {
  const FeatureModelKind* const kind = FeatureModelOf(model);
  if (kind == nullptr) return 0;
  for (const pb::FeatureProto& feature : (model.*kind->config)().features()) {
    if (feature.column() == column) return feature.rows();
  }
  return 0;
}

int64_t BucketsOf(const pb::ModelProto& model, const std::string& column) {
  const int64_t rows = model.has_dlrm() ? model.dlrm().hash_buckets() : RowsOf(model, column);
  return rows > 0 ? rows : kDefaultHashBuckets;
}

absl::Status FillCsv(const pb::SourceProto& source, const pb::ModelProto& model,
                     pb::CsvProto* csv) {
  csv->set_header(source.has_header() ? source.header() : true);
  csv->set_delimiter(source.has_delimiter() ? source.delimiter() : ",");
  csv->set_quote(source.has_quote() ? source.quote() : "\"");
  csv->set_trim(source.trim());
  for (const auto& mark : source.missing()) csv->add_missing(mark);
  for (const auto& column : source.columns()) {
    pb::CsvColumnProto& out = *csv->add_columns();
    out.set_name(column.name());
    if (column.has_index()) {
      out.set_index(column.index());
    } else {
      out.set_index(-1);
    }
    if (column.has_field()) out.set_field(column.field());
    if (column.kind() == "number") {
      out.set_kind(pb::CsvColumnProto::NUMBER);
    } else if (column.kind() == "id") {
      out.set_kind(pb::CsvColumnProto::ID);
    } else if (column.kind() == "hash") {
      out.set_kind(pb::CsvColumnProto::HASH);
    } else if (column.kind() == "label") {
      out.set_kind(pb::CsvColumnProto::LABEL);
    } else {
      return absl::InvalidArgumentError(absl::StrCat("column '", column.name(),
                                                     "' has the unknown kind '", column.kind(),
                                                     "'; use number, id, hash or label"));
    }
    out.set_buckets(column.has_buckets()      ? column.buckets()
                    : column.kind() == "hash" ? BucketsOf(model, column.name())
                                              : 0);
    for (const auto& positive : column.positive()) out.add_positive(positive);
    out.set_missing_value(column.missing_value());
    out.set_required(column.required());
    out.set_separator(column.separator());
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
  pb::DatasetProto dataset;
  dataset.set_name(absl::StrCat("data.", key));
  if (source->format() == "criteo_tsv") {
    dataset.mutable_criteo_tsv()->set_hash_buckets(BucketsOf(job.model(), "ids"));
  } else if (source->format() == "csv") {
    MU_RETURN_IF_ERROR(FillCsv(*source, job.model(), dataset.mutable_csv()));
  } else if (source->format() == "libsvm") {
    dataset.mutable_libsvm()->set_features(source->features());
    *dataset.mutable_libsvm()->mutable_positive() = source->positive();
  } else {
    return absl::InvalidArgumentError(absl::StrCat(
        "data.", key, ": unknown format '", source->format(), "'; use criteo_tsv, csv or libsvm"));
  }
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
  if (!dataset->has_csv()) return;
  const std::map<std::string, int64_t> bounds = model.IdBounds();
  for (pb::CsvColumnProto& column : *dataset->mutable_csv()->mutable_columns()) {
    const auto bound = bounds.find(column.name());
    if (column.kind() != pb::CsvColumnProto::ID || bound == bounds.end()) continue;
    if (column.buckets() == 0 || column.buckets() > bound->second)
      column.set_buckets(bound->second);
  }
}

}  // namespace mu
