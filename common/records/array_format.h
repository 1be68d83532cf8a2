// Columns that are arrays in files of their own (proto/dataset.proto, ArraysProto): IDX and NPY.
#pragma once

#include <string>

#include "common/records/array_head.h"
#include "common/records/record_format.h"

namespace mu {

// INVALID_ARGUMENT: what in the proto makes no sense.
absl::Status CheckArrays(const muster::ArraysProto& arrays);

class ArrayFormat final : public RecordFormat {
 public:
  explicit ArrayFormat(const muster::ArraysProto& arrays) : arrays_(arrays) {}  // that passed

  int parts() const override { return arrays_.columns_size(); }
  FindResult FindHead(int part, const char* begin, const char* end, bool last,
                      FoundRecord* head) const override;
  absl::StatusOr<FileFormat> Open(int part, absl::string_view head) const override;
  std::string Place(absl::string_view path, uint64_t line, uint64_t offset) const override {
    return PlaceOfBinary(path, line, offset);
  }

 private:
  const muster::ArraysProto arrays_;
};

}  // namespace mu
