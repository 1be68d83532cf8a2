// Texts in a list column of int64, for the few columns that are copied beside predictions: batches
// have no tensors of texts.
//
// A record's list is the text's length in bytes, then the bytes, eight in a number (the first in
// its lowest bits), zeros behind the last.
#pragma once

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/records/column_set.h"

namespace mu {

// Into the row being written of the column.
void PackText(absl::string_view text, int column, ColumnSet* columns);
// Of one record's list. What is no such list gives what there is of it.
std::string UnpackText(absl::Span<const int64_t> packed);

}  // namespace mu
