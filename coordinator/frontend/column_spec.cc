#include "coordinator/frontend/column_spec.h"

namespace mu {

using Proto = muster::CsvColumnProto;

ColumnSpec::ColumnSpec(std::string name, Proto::Kind kind) {
  proto_.set_name(std::move(name));
  proto_.set_kind(kind);
  proto_.set_index(-1);
}

ColumnSpec& ColumnSpec::Field(std::string field) {
  proto_.set_field(std::move(field));
  return *this;
}

ColumnSpec& ColumnSpec::At(int index) {
  proto_.set_index(index);
  return *this;
}

ColumnSpec& ColumnSpec::Required() {
  proto_.set_required(true);
  return *this;
}

ColumnSpec& ColumnSpec::MissingValue(float value) {
  proto_.set_missing_value(value);
  return *this;
}

ColumnSpec& ColumnSpec::MissingId(int64_t id) {
  proto_.set_missing_id(id);
  return *this;
}

ColumnSpec& ColumnSpec::Standardise(double mean, double stddev) {
  proto_.set_mean(mean);
  proto_.set_stddev(stddev);
  return *this;
}

ColumnSpec& ColumnSpec::Seed(uint64_t seed) {
  proto_.set_seed(seed);
  return *this;
}

ColumnSpec& ColumnSpec::Several(std::string separator) {
  // Which of the two the format takes is known where the column joins its dataset.
  proto_.set_separator(std::move(separator));
  proto_.set_list(true);
  return *this;
}

ColumnSpec& ColumnSpec::WeightsAfter(std::string separator) {
  proto_.set_weight_separator(std::move(separator));
  return *this;
}

ColumnSpec& ColumnSpec::WeightsFrom(std::string field) {
  proto_.set_weight_field(std::move(field));
  return *this;
}

ColumnSpec& ColumnSpec::Length(uint32_t length) {
  proto_.set_length(length);
  return *this;
}

ColumnSpec& ColumnSpec::Padding(int64_t id) {
  proto_.set_padding(id);
  return *this;
}

ColumnSpec& ColumnSpec::KeepLast() {
  proto_.set_truncate(Proto::TRUNCATE_BEGIN);
  return *this;
}

ColumnSpec& ColumnSpec::Shape(const std::vector<int64_t>& shape) {
  proto_.mutable_shape()->Assign(shape.begin(), shape.end());
  return *this;
}

ColumnSpec NumberColumn(std::string name) { return {std::move(name), Proto::NUMBER}; }

namespace {

ColumnSpec WithBuckets(std::string name, Proto::Kind kind, int64_t buckets) {
  Proto proto = ColumnSpec(std::move(name), kind).proto();
  proto.set_buckets(buckets);
  return ColumnSpec(std::move(proto));
}

}  // namespace

ColumnSpec IdColumn(std::string name, int64_t bound) {
  return WithBuckets(std::move(name), Proto::ID, bound);
}

ColumnSpec HashColumn(std::string name, int64_t buckets) {
  return WithBuckets(std::move(name), Proto::HASH, buckets);
}

ColumnSpec LabelColumn(std::string name, const std::vector<std::string>& positive) {
  Proto proto = ColumnSpec(std::move(name), Proto::LABEL).proto();
  proto.mutable_positive()->Assign(positive.begin(), positive.end());
  return ColumnSpec(std::move(proto));
}

ColumnSpec ClassColumn(std::string name, const std::vector<std::string>& classes) {
  Proto proto = ColumnSpec(std::move(name), Proto::CLASS).proto();
  proto.mutable_classes()->Assign(classes.begin(), classes.end());
  return ColumnSpec(std::move(proto));
}

ColumnSpec VocabularyColumn(std::string name, std::string file, uint32_t oov_buckets) {
  Proto proto = ColumnSpec(std::move(name), Proto::VOCABULARY).proto();
  proto.set_vocabulary_file(std::move(file));
  proto.set_oov_buckets(oov_buckets);
  return ColumnSpec(std::move(proto));
}

ColumnSpec BucketColumn(std::string name, const std::vector<double>& boundaries) {
  Proto proto = ColumnSpec(std::move(name), Proto::BUCKET).proto();
  proto.mutable_boundaries()->Assign(boundaries.begin(), boundaries.end());
  return ColumnSpec(std::move(proto));
}

ColumnSpec CrossColumn(std::string name, const std::vector<std::string>& of, int64_t buckets) {
  Proto proto = WithBuckets(std::move(name), Proto::CROSS, buckets).proto();
  proto.mutable_of()->Assign(of.begin(), of.end());
  return ColumnSpec(std::move(proto));
}

}  // namespace mu
