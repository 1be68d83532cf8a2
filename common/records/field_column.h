// What the values of a field become in one column of csv, jsonl or tfrecord (proto/dataset.proto,
// CsvColumnProto).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/string_view.h"
#include "common/records/bucket_hash.h"
#include "common/records/vocabulary.h"
#include "proto/dataset.pb.h"

namespace mu {

// The rules of one column for one value. Immutable, therefore thread safe.
class FieldColumn {
 public:
  explicit FieldColumn(const muster::CsvColumnProto& proto);  // that has passed CheckFieldColumns
  FieldColumn(FieldColumn&&) = default;

  const muster::CsvColumnProto& proto() const { return proto_; }
  const std::string& name() const { return proto_.name(); }
  bool is_ids() const { return is_ids_; }

  // The value that a text, an integer or a number stands for. False: it is bad, with the reason in
  // *error. An integer is the same as its decimal text.
  bool ToId(absl::string_view text, int64_t* id, std::string* error) const;
  bool ToId(int64_t value, int64_t* id, std::string* error) const;
  bool ToId(float value, int64_t* id, std::string* error) const;
  bool ToFloat(absl::string_view text, float* value, std::string* error) const;
  bool ToFloat(int64_t integer, float* value, std::string* error) const;
  bool ToFloat(float number, float* value, std::string* error) const;
  // What stands for a missing value. False: nothing does.
  bool MissingId(int64_t* id) const;
  float MissingFloat() const;

  // What a cross takes of this column.
  uint64_t CrossOf(absl::string_view text) const { return HashBytes(text.data(), text.size()); }
  bool crosses_id() const { return proto_.kind() == muster::CsvColumnProto::BUCKET; }

  // CROSS: of the values of its columns, combined.
  int64_t OfCross(uint64_t combined) const { return hash_->OfValue(combined); }

 private:
  bool CheckId(int64_t id, absl::string_view text, std::string* error) const;
  bool ToClass(absl::string_view text, int64_t* id, std::string* error) const;
  bool ToVocabulary(absl::string_view text, int64_t* id, std::string* error) const;
  int64_t BucketOf(double value) const;
  int64_t BucketOf(float value) const;
  // Numbers of long texts, such as times, stay apart until they are standardised.
  float Standardised(double value) const;
  template <typename T>  // float, double
  bool Parse(absl::string_view text, T* value, std::string* error) const;

  muster::CsvColumnProto proto_;  // without the vocabulary
  bool is_ids_;
  bool standardises_;
  double mean_, stddev_;
  std::unique_ptr<BucketHash> hash_;  // HASH, CROSS; VOCABULARY: of what is not in it
  absl::flat_hash_set<std::string> positive_;
  absl::flat_hash_map<std::string, int64_t> classes_;
  std::unique_ptr<Vocabulary> vocabulary_;
};

}  // namespace mu
