// Goes through all records of a job's data on this machine, for commands that look at data.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "common/base/status.h"
#include "common/records/column_set.h"
#include "proto/dataset.pb.h"

namespace mu {

struct ScannedData {
  uint64_t files = 0;
  uint64_t records = 0;  // good ones
  uint64_t bad = 0;      // left out, with on_bad_record: skip
  std::string first_bad;
};

// Parses the selected records of the dataset's files, which must all be here, into `columns` (its
// observer sees them). After each, `parsed(good)` is called: it commits or drops the row. A bad
// record is an error unless the dataset skips them. Errors: INVALID_ARGUMENT as the readers'; those
// of files.
absl::StatusOr<ScannedData> ScanData(const muster::DatasetProto& dataset, ColumnSet* columns,
                                     const std::function<void(bool good)>& parsed);

}  // namespace mu
