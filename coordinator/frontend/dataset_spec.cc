#include "coordinator/frontend/dataset_spec.h"

#include <set>

#include "absl/strings/str_cat.h"

namespace mu {
namespace {

constexpr uint32_t kDefaultBlockRecords = 4096;

absl::Status CheckColumn(const pb::CsvProto& csv, const pb::CsvColumnProto& column,
                         std::set<std::string>* names) {
  const std::string& name = column.name();
  if (name.empty()) return absl::InvalidArgumentError("a column needs a name");
  if (!names->insert(name).second) {
    return absl::InvalidArgumentError(absl::StrCat("two columns are named \"", name, "\""));
  }
  if (column.index() < -1 || (column.index() == -1 && !csv.header())) {
    return absl::InvalidArgumentError(
        absl::StrCat("column \"", name, "\" needs the index of its field, as there is no header"));
  }
  if (!column.field().empty() && column.index() > 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "column \"", name, "\" has both a field's name and an index; give it one of them"));
  }
  if (!column.field().empty() && !csv.header()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "column \"", name, "\" names a field, but there is no header; give its index"));
  }
  if (column.kind() == pb::CsvColumnProto::HASH && column.buckets() <= 0) {
    return absl::InvalidArgumentError(absl::StrCat("column \"", name, "\" needs buckets above 0"));
  }
  if (column.buckets() < 0) {
    return absl::InvalidArgumentError(absl::StrCat("column \"", name, "\" has a negative bound"));
  }
  if (column.kind() == pb::CsvColumnProto::LABEL && column.positive().empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("label \"", name, "\" must list the texts that count as positive"));
  }
  return absl::OkStatus();
}

absl::Status CheckFormat(const pb::DatasetProto& proto) {
  if (proto.has_criteo_tsv() && proto.criteo_tsv().hash_buckets() <= 0) {
    return absl::InvalidArgumentError("criteo_tsv: hash_buckets must be above 0");
  }
  if (proto.has_libsvm() && proto.libsvm().features() <= 0)
    return absl::InvalidArgumentError("libsvm: features must be above every id");
  if (!proto.has_csv()) return absl::OkStatus();
  const pb::CsvProto& csv = proto.csv();
  if (csv.columns().empty()) return absl::InvalidArgumentError("csv: no column is asked for");
  if (csv.delimiter().size() > 1 || csv.quote().size() > 1) {
    return absl::InvalidArgumentError("csv: delimiter and quote are one character each");
  }
  std::set<std::string> names;
  for (const pb::CsvColumnProto& column : csv.columns()) {
    MU_RETURN_IF_ERROR(CheckColumn(csv, column, &names));
  }
  return absl::OkStatus();
}

pb::CsvColumnProto MakeColumn(std::string name, pb::CsvColumnProto::Kind kind, int index) {
  pb::CsvColumnProto column;
  column.set_name(std::move(name));
  column.set_kind(kind);
  column.set_index(index);
  return column;
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
  MutableCsv("Missing")->mutable_missing()->Assign(marks.begin(), marks.end());
  return *this;
}

DatasetSpec& DatasetSpec::Trim(bool trim) {
  MutableCsv("Trim")->set_trim(trim);
  return *this;
}

DatasetSpec& DatasetSpec::Column(pb::CsvColumnProto column) {
  *MutableCsv("Column")->add_columns() = std::move(column);
  return *this;
}

DatasetSpec& DatasetSpec::Number(std::string name, int index) {
  return Column(MakeColumn(std::move(name), pb::CsvColumnProto::NUMBER, index));
}

DatasetSpec& DatasetSpec::Id(std::string name, int64_t bound, int index) {
  pb::CsvColumnProto column = MakeColumn(std::move(name), pb::CsvColumnProto::ID, index);
  column.set_buckets(bound);
  return Column(std::move(column));
}

DatasetSpec& DatasetSpec::Hash(std::string name, int64_t buckets, int index) {
  pb::CsvColumnProto column = MakeColumn(std::move(name), pb::CsvColumnProto::HASH, index);
  column.set_buckets(buckets);
  return Column(std::move(column));
}

DatasetSpec& DatasetSpec::Label(std::string name, const std::vector<std::string>& positive,
                                int index) {
  pb::CsvColumnProto column = MakeColumn(std::move(name), pb::CsvColumnProto::LABEL, index);
  column.mutable_positive()->Assign(positive.begin(), positive.end());
  return Column(std::move(column));
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

DatasetSpec CriteoTsv(const std::vector<std::string>& files, int64_t hash_buckets) {
  pb::DatasetProto proto;
  proto.set_name("criteo_tsv");
  proto.mutable_criteo_tsv()->set_hash_buckets(hash_buckets);
  proto.mutable_files()->Assign(files.begin(), files.end());
  proto.set_block_records(kDefaultBlockRecords);
  return DatasetSpec(std::move(proto));
}

DatasetSpec Libsvm(const std::vector<std::string>& files, int64_t features,
                   const std::vector<std::string>& positive) {
  pb::DatasetProto proto;
  proto.set_name("libsvm");
  proto.mutable_libsvm()->set_features(features);
  proto.mutable_libsvm()->mutable_positive()->Assign(positive.begin(), positive.end());
  proto.mutable_files()->Assign(files.begin(), files.end());
  proto.set_block_records(kDefaultBlockRecords);
  return DatasetSpec(std::move(proto));
}

DatasetSpec Csv(const std::vector<std::string>& files) {
  pb::DatasetProto proto;
  proto.set_name("csv");
  proto.mutable_csv();
  proto.mutable_files()->Assign(files.begin(), files.end());
  proto.set_block_records(kDefaultBlockRecords);
  return DatasetSpec(std::move(proto));
}

}  // namespace mu
