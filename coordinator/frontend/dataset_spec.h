// What users write to describe a dataset:
//
//   mu::CriteoTsv({"data/train-*.tsv.gz"}, 100000).Batch(512).Shuffle(100000).Epochs(1)
//   mu::Csv({"adult.csv"}).Header().Number("age").Hash("job", 1000).Label("income",
//   {">50K"}).Batch(256)
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/status.h"
#include "coordinator/frontend/column_spec.h"
#include "proto/dataset.pb.h"

namespace mu {

class DatasetSpec {
 public:
  explicit DatasetSpec(pb::DatasetProto proto) : proto_(std::move(proto)) {}
  // One that ToProto refuses with this reason.
  static DatasetSpec Refused(std::string why) {
    DatasetSpec spec{pb::DatasetProto()};
    spec.error_ = std::move(why);
    return spec;
  }

  DatasetSpec& Name(std::string name);
  DatasetSpec& Batch(uint32_t records);
  // Blocks are scattered and the records of a lease permuted; `records` says over how many. 0: file
  // order.
  DatasetSpec& Shuffle(uint64_t records);
  // Keeps a record if its index in its file, modulo `modulo`, is one of `keep`.
  DatasetSpec& Records(uint32_t modulo, const std::vector<uint32_t>& keep);
  DatasetSpec& Epochs(uint32_t epochs);  // 0, the default: without end
  // Every worker goes through all records by itself, in an order of its own if they are shuffled,
  // as a per-worker iterator of TensorFlow's ParameterServerStrategy does; nothing is promised
  // about how often a record is used. Epochs are then each worker's; a function for which its
  // worker has nothing left ends with OUT_OF_RANGE.
  DatasetSpec& PerWorker() { return Visitation(pb::VISITATION_NONE); }
  DatasetSpec& Visitation(pb::Visitation visitation);
  DatasetSpec& Seed(uint64_t seed);  // of the order; 0, the default: the job's
  DatasetSpec& OnBadRecord(pb::OnBadRecord what);
  DatasetSpec& SkipBadRecords() { return OnBadRecord(pb::ON_BAD_RECORD_SKIP); }
  DatasetSpec& BlockRecords(uint32_t records);  // records of a file that are read together

  // Of csv only.
  DatasetSpec& Header(bool header = true);
  DatasetSpec& Delimiter(std::string delimiter);
  DatasetSpec& Quote(std::string quote);
  DatasetSpec& Trim(bool trim = true);
  DatasetSpec& SkipLines(uint32_t lines);  // at the beginning of each file, before the header
  // Of csv and jsonl: texts that mean a missing field.
  DatasetSpec& Missing(const std::vector<std::string>& marks);

  // Of csv, jsonl and tfrecord. column_spec.h has what these short forms do not.
  DatasetSpec& Column(const ColumnSpec& column);
  DatasetSpec& Column(pb::CsvColumnProto column);  // anything the format can
  // `index` of csv's field from 0; -1: the field of that name.
  DatasetSpec& Number(std::string name, int index = -1);                 // float32 [batch]
  DatasetSpec& Id(std::string name, int64_t bound = 0, int index = -1);  // int64 [batch]
  DatasetSpec& Hash(std::string name, int64_t buckets, int index = -1);  // int64 [batch]
  DatasetSpec& Label(std::string name, const std::vector<std::string>& positive, int index = -1);
  DatasetSpec& Class(std::string name, const std::vector<std::string>& classes, int index = -1);
  DatasetSpec& Vocabulary(std::string name, std::string file, uint32_t oov_buckets = 1,
                          int index = -1);
  DatasetSpec& Bucket(std::string name, const std::vector<double>& boundaries, int index = -1);
  DatasetSpec& Cross(std::string name, const std::vector<std::string>& of, int64_t buckets);
  // Of a field with several values, in csv between `separator`s: NAME.values, NAME.splits.
  DatasetSpec& IdList(std::string name, int64_t bound = 0, std::string separator = "|");
  DatasetSpec& HashList(std::string name, int64_t buckets, std::string separator = "|");
  // The same with a fixed length: NAME [batch, length], NAME.length [batch].
  DatasetSpec& IdSequence(std::string name, uint32_t length, int64_t bound = 0,
                          std::string separator = "|");
  DatasetSpec& HashSequence(std::string name, uint32_t length, int64_t buckets,
                            std::string separator = "|");
  // Several numbers: NAME float32 [batch, shape].
  DatasetSpec& Numbers(std::string name, const std::vector<int64_t>& shape,
                       std::string separator = "|");

  // A file that travels with the dataset, which names it among its files (memory_data.h).
  DatasetSpec& InlineFile(std::string path, std::string contents);

  // INVALID_ARGUMENT naming what is missing or does not fit. The files may be patterns still.
  absl::StatusOr<pb::DatasetProto> ToProto() const;

 private:
  pb::CsvProto* MutableCsv(const char* setting);

  pb::DatasetProto proto_;
  std::string error_;  // the first misuse, for ToProto
};

// Click logs as Criteo published them: columns label, dense [batch, 13], ids [batch, 26].
DatasetSpec CriteoTsv(const std::vector<std::string>& files, int64_t hash_buckets = 100000);
DatasetSpec Csv(const std::vector<std::string>& files);
// Sparse text as LIBSVM's programs read it, with ids below `features`: columns label,
// features.values, features.splits, features.weights. With `positive` the label is 1 where its text
// is one of these, else 0; without it is the number that stands there.
DatasetSpec Libsvm(const std::vector<std::string>& files, int64_t features,
                   const std::vector<std::string>& positive = {});

// Sparse text with fields, as LIBFFM's programs read it: columns label, and field_F.values,
// field_F.splits, field_F.weights of each field F below `fields`. `positive` as Libsvm's.
DatasetSpec Libffm(const std::vector<std::string>& files, int64_t features, int64_t fields,
                   const std::vector<std::string>& positive = {});

// A JSON object a line, and TensorFlow's record files of tf.Example messages; then come the
// columns.
DatasetSpec Jsonl(const std::vector<std::string>& files);
DatasetSpec Tfrecord(const std::vector<std::string>& files);

struct IdxOptions {
  float scale = 1.0f / 255;
  std::vector<int64_t> shape = {28, 28};
};
// MNIST's files: columns image float32 [batch, shape], the elements times `scale`, and label int64
// [batch]. The n-th file of labels belongs to the n-th of images; without any there is no label.
DatasetSpec Idx(const std::vector<std::string>& images, const std::vector<std::string>& labels,
                const IdxOptions& options = {});

struct NpyColumn {
  std::string name;
  std::vector<std::string> files;   // the n-th belongs to the n-th of the other columns
  std::vector<int64_t> shape = {};  // of a record
  bool ids = false;                 // int64 instead of float32
  int64_t bound = 0;                // of ids; 0: none
};
// NumPy's files, one a column; record i is what all of them have at index i.
DatasetSpec Npy(const std::vector<NpyColumn>& columns);

}  // namespace mu
