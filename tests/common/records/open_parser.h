// A dataset's parser for a file with this head.
#pragma once

#include <memory>
#include <utility>

#include "common/records/record_format.h"
#include "tests/testing/matchers.h"

namespace mu::testing {

// Null, and the test fails, if the dataset makes no sense.
inline std::unique_ptr<const RecordParser> ParserOf(const muster::DatasetProto& dataset,
                                                    absl::string_view head = "") {
  const auto format = MakeRecordFormat(dataset);
  EXPECT_THAT(format, IsOk());
  if (!format.ok()) return nullptr;
  auto file = (*format)->Open(0, head);
  EXPECT_THAT(file, IsOk());
  return file.ok() ? std::move(file->parser) : nullptr;
}

}  // namespace mu::testing
