// Splits of ragged values: bag or sequence b is values[splits[b] : splits[b + 1]].
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace mu {

// `splits` has `bags` + 1 entries. INVALID_ARGUMENT unless they start at 0, never fall and end at
// the number of values.
inline absl::Status CheckSplits(const int32_t* splits, int64_t bags, int64_t values) {
  bool valid = bags >= 0 && splits[0] == 0 && splits[bags] == values;
  for (int64_t b = 0; valid && b < bags; ++b) valid = splits[b] <= splits[b + 1];
  if (valid) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("splits must start at 0, never fall and end at the number of values, ", values));
}

}  // namespace mu
