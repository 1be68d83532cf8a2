// Numbers and flags as a job file writes them: strictly, since YAML's freedoms (010 is 8, `no` is
// false, .inf) are slips in a job. Errors are INVALID_ARGUMENT, and their messages end what begins
// with "`key` ".
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace mu {

absl::StatusOr<bool> ParseBool(absl::string_view text);      // true, false
absl::StatusOr<int64_t> ParseInt(absl::string_view text);    // decimal digits
absl::StatusOr<uint64_t> ParseUint(absl::string_view text);  // the same, not negative
absl::StatusOr<double> ParseDouble(absl::string_view text);  // finite
absl::StatusOr<float> ParseFloat(absl::string_view text);    // finite, within float's range

}  // namespace mu
