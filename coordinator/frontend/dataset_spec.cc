#include "coordinator/frontend/dataset_spec.h"

#include "absl/strings/str_cat.h"
#include "common/graph/dataset_schema.h"
#include "common/records/record_format.h"

namespace mu {
namespace {

// Beside what CheckFormat finds.
absl::Status CheckColumns(const pb::DatasetProto& proto) {
  for (const pb::CsvColumnProto& column : FieldColumnsOf(proto)) {
    if (!column.field().empty() && column.index() > 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("column \"", column.name(),
                       "\" has both a field's name and an index; give it one of them"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

DatasetSpec& DatasetSpec::Name(std::string name) {
  proto_.set_name(std::move(name));
  return *this;
}

DatasetSpec& DatasetSpec::Batch(uint32_t records) {
  proto_.set_batch_size(records);
  return *this;
}

DatasetSpec& DatasetSpec::Shuffle(uint64_t records) {
  proto_.set_shuffle_records(records);
  return *this;
}

DatasetSpec& DatasetSpec::Records(uint32_t modulo, const std::vector<uint32_t>& keep) {
  proto_.mutable_records()->set_modulo(modulo);
  proto_.mutable_records()->mutable_keep()->Assign(keep.begin(), keep.end());
  return *this;
}

DatasetSpec& DatasetSpec::Epochs(uint32_t epochs) {
  proto_.set_epochs(epochs);
  return *this;
}

DatasetSpec& DatasetSpec::Visitation(pb::Visitation visitation) {
  proto_.set_visitation(visitation);
  return *this;
}

DatasetSpec& DatasetSpec::Seed(uint64_t seed) {
  proto_.set_seed(seed);
  return *this;
}

DatasetSpec& DatasetSpec::OnBadRecord(pb::OnBadRecord what) {
  proto_.set_on_bad_record(what);
  return *this;
}

DatasetSpec& DatasetSpec::BlockRecords(uint32_t records) {
  proto_.set_block_records(records);
  return *this;
}

// A setting of csv on another format is remembered as an error; the scratch message keeps the chain
// going.
pb::CsvProto* DatasetSpec::MutableCsv(const char* setting) {
  if (!proto_.has_csv() && error_.empty())
    error_ = absl::StrCat(setting, " is a setting of csv only");
  static thread_local pb::CsvProto scratch;
  return proto_.has_csv() ? proto_.mutable_csv() : &scratch;
}

DatasetSpec& DatasetSpec::Header(bool header) {
  MutableCsv("Header")->set_header(header);
  return *this;
}

DatasetSpec& DatasetSpec::Delimiter(std::string delimiter) {
  MutableCsv("Delimiter")->set_delimiter(std::move(delimiter));
  return *this;
}

DatasetSpec& DatasetSpec::Quote(std::string quote) {
  MutableCsv("Quote")->set_quote(std::move(quote));
  return *this;
}

DatasetSpec& DatasetSpec::Missing(const std::vector<std::string>& marks) {
  auto* const missing = proto_.has_jsonl() ? proto_.mutable_jsonl()->mutable_missing()
                                           : MutableCsv("Missing")->mutable_missing();
  missing->Assign(marks.begin(), marks.end());
  return *this;
}

DatasetSpec& DatasetSpec::SkipLines(uint32_t lines) {
  MutableCsv("SkipLines")->set_skip_lines(lines);
  return *this;
}

DatasetSpec& DatasetSpec::Trim(bool trim) {
  MutableCsv("Trim")->set_trim(trim);
  return *this;
}

DatasetSpec& DatasetSpec::Column(pb::CsvColumnProto column) {
  FieldColumnList* const columns = MutableFieldColumnsOf(&proto_);
  if (columns != nullptr) {
    *columns->Add() = std::move(column);
  } else if (error_.empty()) {
    error_ = "columns are for csv, jsonl and tfrecord only";
  }
  return *this;
}

DatasetSpec& DatasetSpec::Column(const ColumnSpec& column) {
  pb::CsvColumnProto proto = column.proto();
  if (proto_.has_csv()) {
    proto.clear_list();
  } else {
    proto.clear_separator();
  }
  return Column(std::move(proto));
}

DatasetSpec& DatasetSpec::Number(std::string name, int index) {
  return Column(NumberColumn(std::move(name)).At(index));
}

DatasetSpec& DatasetSpec::Id(std::string name, int64_t bound, int index) {
  return Column(IdColumn(std::move(name), bound).At(index));
}

DatasetSpec& DatasetSpec::Hash(std::string name, int64_t buckets, int index) {
  return Column(HashColumn(std::move(name), buckets).At(index));
}

DatasetSpec& DatasetSpec::Label(std::string name, const std::vector<std::string>& positive,
                                int index) {
  return Column(LabelColumn(std::move(name), positive).At(index));
}

DatasetSpec& DatasetSpec::Class(std::string name, const std::vector<std::string>& classes,
                                int index) {
  return Column(ClassColumn(std::move(name), classes).At(index));
}

DatasetSpec& DatasetSpec::Vocabulary(std::string name, std::string file, uint32_t oov_buckets,
                                     int index) {
  return Column(VocabularyColumn(std::move(name), std::move(file), oov_buckets).At(index));
}

DatasetSpec& DatasetSpec::Bucket(std::string name, const std::vector<double>& boundaries,
                                 int index) {
  return Column(BucketColumn(std::move(name), boundaries).At(index));
}

DatasetSpec& DatasetSpec::Cross(std::string name, const std::vector<std::string>& of,
                                int64_t buckets) {
  return Column(CrossColumn(std::move(name), of, buckets));
}

DatasetSpec& DatasetSpec::IdList(std::string name, int64_t bound, std::string separator) {
  return Column(IdColumn(std::move(name), bound).Several(std::move(separator)));
}

DatasetSpec& DatasetSpec::HashList(std::string name, int64_t buckets, std::string separator) {
  return Column(HashColumn(std::move(name), buckets).Several(std::move(separator)));
}

DatasetSpec& DatasetSpec::IdSequence(std::string name, uint32_t length, int64_t bound,
                                     std::string separator) {
  return Column(IdColumn(std::move(name), bound).Several(std::move(separator)).Length(length));
}

DatasetSpec& DatasetSpec::HashSequence(std::string name, uint32_t length, int64_t buckets,
                                       std::string separator) {
  return Column(HashColumn(std::move(name), buckets).Several(std::move(separator)).Length(length));
}

DatasetSpec& DatasetSpec::Numbers(std::string name, const std::vector<int64_t>& shape,
                                  std::string separator) {
  return Column(NumberColumn(std::move(name)).Several(std::move(separator)).Shape(shape));
}

DatasetSpec& DatasetSpec::InlineFile(std::string path, std::string contents) {
  pb::InlineFileProto* const file = proto_.add_inline_files();
  file->set_path(std::move(path));
  file->set_contents(std::move(contents));
  return *this;
}

absl::StatusOr<pb::DatasetProto> DatasetSpec::ToProto() const {
  absl::Status valid;
  if (!error_.empty()) {
    valid = absl::InvalidArgumentError(error_);
  } else if (proto_.files().empty()) {
    valid = absl::InvalidArgumentError("no files are given");
  } else if (proto_.batch_size() == 0) {
    valid = absl::InvalidArgumentError("the batch size is missing: add .Batch(n)");
  } else if (proto_.has_records() && proto_.records().modulo() > 0 &&
             proto_.records().keep().empty()) {
    valid = absl::InvalidArgumentError("Records: keeps nothing");
  } else {
    valid = CheckFormat(proto_);
    valid.Update(CheckColumns(proto_));
  }
  for (const uint32_t keep : proto_.records().keep()) {
    if (valid.ok() && keep >= proto_.records().modulo()) {
      valid = absl::InvalidArgumentError(
          absl::StrCat("Records: no index is ", keep, " modulo ", proto_.records().modulo()));
    }
  }
  if (!valid.ok()) return Annotate(valid, absl::StrCat("dataset \"", proto_.name(), "\""));
  return proto_;
}

}  // namespace mu
