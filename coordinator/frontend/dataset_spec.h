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
#include "proto/dataset.pb.h"

namespace mu {

class DatasetSpec {
 public:
  explicit DatasetSpec(pb::DatasetProto proto) : proto_(std::move(proto)) {}

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
  DatasetSpec& Missing(const std::vector<std::string>& marks);
  DatasetSpec& Trim(bool trim = true);
  DatasetSpec& Column(pb::CsvColumnProto column);  // anything the format can
  // `index` of the field from 0; -1: the field of that name in the header.
  DatasetSpec& Number(std::string name, int index = -1);                 // float32 [batch]
  DatasetSpec& Id(std::string name, int64_t bound = 0, int index = -1);  // int64 [batch]
  DatasetSpec& Hash(std::string name, int64_t buckets, int index = -1);  // int64 [batch]
  DatasetSpec& Label(std::string name, const std::vector<std::string>& positive, int index = -1);

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

}  // namespace mu
