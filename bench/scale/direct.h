// The loop that needs no coordinator: it keeps calls under way to each address, as many as a
// coordinator would, and starts the next one when one has ended. All go through one stream to each
// address.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/status.h"
#include "proto/graph.pb.h"
#include "proto/table.pb.h"

namespace mu::scale {

struct DirectOptions {
  std::vector<std::string> addresses;
  int in_flight = 2;
  absl::Duration warm_up;
  absl::Duration window;
};

struct DirectResult {
  double calls_per_second = 0;
  double cpu_seconds = 0;  // of this process, in the window
  uint64_t begin_ns = 0, end_ns = 0;
};

// Calls of /bench/Echo.
absl::StatusOr<DirectResult> DriveEcho(const DirectOptions& options);
// Runs of a function of `steps` steps that reads no data, on workers that belong to nobody yet.
absl::StatusOr<DirectResult> DriveWorkers(const DirectOptions& options,
                                          const pb::FunctionProto& function, uint32_t steps);

}  // namespace mu::scale
