// What libsvm and libffm have in common: words between spaces, the label before them, and comments.
#pragma once

#include <cstdint>
#include <string>

#include "absl/container/flat_hash_set.h"
#include "common/records/column_set.h"
#include "common/records/record_scanner.h"
#include "google/protobuf/repeated_ptr_field.h"

namespace mu {

inline constexpr RecordSyntax kSparseSyntax = {.comment = '#'};

// The next text between spaces, taken off `rest`; empty at the end or where a comment begins.
absl::string_view NextWord(absl::string_view* rest);

// ID:VALUE of a column's list, the id from 0 and below `bound`. Returns false with the reason, in
// which `text` stands for the whole word.
bool ParseIdAndValue(absl::string_view id_and_value, absl::string_view text,
                     absl::string_view column, int64_t bound, int64_t* id, float* value,
                     std::string* error);

// Immutable, therefore thread safe.
class SparseLabel {
 public:
  static constexpr int kColumn = 0;  // as SchemaOf lists it

  // `positive`: texts that mean 1; none: the label is the number that stands there. Where all of
  // them are numbers, labels are: another text is no label. `unlabelled`: there is no column of it.
  SparseLabel(const google::protobuf::RepeatedPtrField<std::string>& positive, bool unlabelled);

  int columns() const { return unlabelled_ ? 0 : 1; }
  // Takes the label off the record `rest`; without a column of it, only if it is there. The
  // observer sees its text. `form` is what a line looks like.
  bool Parse(absl::string_view form, absl::string_view* rest, ColumnSet* columns,
             std::string* error) const;

 private:
  const absl::flat_hash_set<std::string> positive_;
  const bool numbers_;  // all positive texts are
  const bool unlabelled_;
};

}  // namespace mu
