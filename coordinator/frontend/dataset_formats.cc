// The formats that a DatasetSpec begins with.
#include "coordinator/frontend/dataset_spec.h"

namespace mu {
namespace {

// Of any batch size: leases take as many blocks as a batch needs (coordinator/core/data_plan.h),
// and checkpoints of programs have positions in leases of such blocks.
constexpr uint32_t kDefaultBlockRecords = 4096;

pb::DatasetProto Begin(const char* name, const std::vector<std::string>& files) {
  pb::DatasetProto proto;
  proto.set_name(name);
  proto.mutable_files()->Assign(files.begin(), files.end());
  proto.set_block_records(kDefaultBlockRecords);
  return proto;
}

}  // namespace

DatasetSpec CriteoTsv(const std::vector<std::string>& files, int64_t hash_buckets) {
  pb::DatasetProto proto = Begin("criteo_tsv", files);
  proto.mutable_criteo_tsv()->set_hash_buckets(hash_buckets);
  return DatasetSpec(std::move(proto));
}

DatasetSpec Csv(const std::vector<std::string>& files) {
  pb::DatasetProto proto = Begin("csv", files);
  proto.mutable_csv();
  return DatasetSpec(std::move(proto));
}

DatasetSpec Libsvm(const std::vector<std::string>& files, int64_t features,
                   const std::vector<std::string>& positive) {
  pb::DatasetProto proto = Begin("libsvm", files);
  proto.mutable_libsvm()->set_features(features);
  proto.mutable_libsvm()->mutable_positive()->Assign(positive.begin(), positive.end());
  return DatasetSpec(std::move(proto));
}

DatasetSpec Libffm(const std::vector<std::string>& files, int64_t features, int64_t fields,
                   const std::vector<std::string>& positive) {
  pb::DatasetProto proto = Begin("libffm", files);
  proto.mutable_libffm()->set_features(features);
  proto.mutable_libffm()->set_fields(fields);
  proto.mutable_libffm()->mutable_positive()->Assign(positive.begin(), positive.end());
  return DatasetSpec(std::move(proto));
}

DatasetSpec Jsonl(const std::vector<std::string>& files) {
  pb::DatasetProto proto = Begin("jsonl", files);
  proto.mutable_jsonl();
  return DatasetSpec(std::move(proto));
}

DatasetSpec Tfrecord(const std::vector<std::string>& files) {
  pb::DatasetProto proto = Begin("tfrecord", files);
  proto.mutable_tfrecord();
  return DatasetSpec(std::move(proto));
}

DatasetSpec Idx(const std::vector<std::string>& images, const std::vector<std::string>& labels,
                const IdxOptions& options) {
  pb::DatasetProto proto = Begin("idx", images);
  proto.mutable_arrays()->set_container(pb::ArraysProto::IDX);
  pb::ArrayColumnProto* const image = proto.mutable_arrays()->add_columns();
  image->set_name("image");
  image->set_dtype(pb::FLOAT32);
  image->set_scale(options.scale);
  image->mutable_shape()->Assign(options.shape.begin(), options.shape.end());
  if (labels.empty()) return DatasetSpec(std::move(proto));
  pb::ArrayColumnProto* const label = proto.mutable_arrays()->add_columns();
  label->set_name("label");
  label->set_dtype(pb::INT64);
  proto.add_companions()->mutable_files()->Assign(labels.begin(), labels.end());
  return DatasetSpec(std::move(proto));
}

DatasetSpec Npy(const std::vector<NpyColumn>& columns) {
  pb::DatasetProto proto =
      Begin("npy", columns.empty() ? std::vector<std::string>() : columns[0].files);
  proto.mutable_arrays()->set_container(pb::ArraysProto::NPY);
  for (const NpyColumn& from : columns) {
    pb::ArrayColumnProto* const column = proto.mutable_arrays()->add_columns();
    column->set_name(from.name);
    column->set_dtype(from.ids ? pb::INT64 : pb::FLOAT32);
    column->mutable_shape()->Assign(from.shape.begin(), from.shape.end());
    column->set_bound(from.bound);
    if (&from == &columns[0]) continue;
    proto.add_companions()->mutable_files()->Assign(from.files.begin(), from.files.end());
  }
  return DatasetSpec(std::move(proto));
}

}  // namespace mu
