// LIBFFM's sparse text: a label, then FIELD:ID:VALUE for what is not 0 (proto/dataset.proto,
// LibffmProto).
#pragma once

#include <string>
#include <vector>

#include "common/records/record_parser.h"
#include "common/records/sparse_text.h"

namespace mu {

class LibffmParser final : public RecordParser {
 public:
  explicit LibffmParser(const muster::LibffmProto& libffm);
  // Features may come in any order, and a field several times or not at all: its list has what the
  // line gives. The observer sees the label's text.
  bool Parse(absl::string_view record, ColumnSet* columns, std::string* error) const override;

 private:
  bool ParseFeature(absl::string_view text, ColumnSet* columns, std::string* error) const;

  const int64_t features_;
  const SparseLabel label_;
  std::vector<std::string> names_;  // of the fields' columns
};

}  // namespace mu
