// Criteo's click logs: label, 13 integers, 26 hexadecimal categoricals, tab separated
// (proto/dataset.proto).
#pragma once

#include <string>
#include <vector>

#include "common/records/bucket_hash.h"
#include "common/records/record_parser.h"

namespace mu {

class CriteoParser final : public RecordParser {
 public:
  explicit CriteoParser(int64_t hash_buckets);  // > 0
  // The label must be 0 or 1; integers have at most 18 digits; a categorical of other than eight
  // hexadecimal digits is hashed as text. Upper and lower case digits are the same.
  bool Parse(absl::string_view record, ColumnSet* columns, std::string* error) const override;

 private:
  std::vector<BucketHash> hashes_;  // per categorical field
  std::vector<int64_t> missing_;    // the bucket of a missing value, per field
};

}  // namespace mu
