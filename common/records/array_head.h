// The heads of files that hold one array: IDX and NPY.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/base/status.h"
#include "common/records/record_finder.h"
#include "common/tensor/tensor.h"

namespace mu {

struct ArrayHead {
  char kind = 'u';  // 'u' unsigned, 'i' signed, 'f' float, 'b' bool
  int size = 1;     // bytes of an element: 1, 2, 4, 8
  bool big_endian = false;
  std::vector<uint64_t> dims;  // the first: records
  uint64_t head_bytes = 0;

  // Elements of a record. Never overflows: Parse...Head checks.
  uint64_t row_elements() const;
  std::string Describe() const;  // "float32 [100, 3]"
};

// Where the head of an IDX or NPY file ends, as RecordFormat::FindHead says it.
FindResult FindIdxHead(const char* begin, const char* end, bool last, FoundRecord* head);
FindResult FindNpyHead(const char* begin, const char* end, bool last, FoundRecord* head);

// `head` is what was found. INVALID_ARGUMENT: an element type that is no number, an order or a size
// that cannot be read record by record.
absl::StatusOr<ArrayHead> ParseIdxHead(absl::string_view head);
absl::StatusOr<ArrayHead> ParseNpyHead(absl::string_view head);

// The bytes of a NPY file (version 1) with this array, float32 or int64, whose first axis is the
// records.
std::string NpyOf(const Tensor& array);

}  // namespace mu
