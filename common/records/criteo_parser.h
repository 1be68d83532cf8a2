// Criteo's click logs: label, 13 integers, 26 hexadecimal categoricals, tab separated
// (proto/dataset.proto).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/records/bucket_hash.h"
#include "common/records/record_parser.h"

namespace mu {

class CriteoParser final : public RecordParser {
 public:
  // hash_buckets > 0. `labelled`: the first field is the label; else it may be anything, or not be
  // there, and there is no column of it.
  explicit CriteoParser(int64_t hash_buckets, bool labelled = true);
  // The label must be 0 or 1; integers have at most 18 digits; a categorical of other than eight
  // hexadecimal digits is hashed as text. Upper and lower case digits are the same. An observer
  // sees the columns' values, and which fields were empty.
  bool Parse(absl::string_view record, ColumnSet* columns, std::string* error) const override;

 private:
  // Moves *at behind the label's field.
  bool TakeLabel(const char** at, const char* end, ColumnSet* columns, std::string* error) const;
  // Tells the columns' observer what the row being written holds: of the fields of these bits that
  // they are missing.
  void Observe(uint32_t empty_dense, uint32_t empty_ids, ColumnSet* columns) const;

  const int dense_column_;          // as SchemaOf lists them; behind it are the ids
  std::vector<BucketHash> hashes_;  // per categorical field
  std::vector<int64_t> missing_;    // the bucket of a missing value, per field
};

}  // namespace mu
