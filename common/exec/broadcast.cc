#include "common/exec/broadcast.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace mu {

absl::StatusOr<BroadcastPlan> PlanBroadcast(const Shape& a, const Shape& b) {
  BroadcastPlan plan;
  const int rank = std::max(a.rank(), b.rank());
  if (rank > kMaxBroadcastAxes) {
    return absl::InvalidArgumentError(absl::StrCat("shapes have ", rank, " axes; at most ",
                                                   kMaxBroadcastAxes, " can be broadcast"));
  }
  int64_t sizes_a[kMaxBroadcastAxes], sizes_b[kMaxBroadcastAxes];
  for (int i = 0; i < rank; ++i) {
    const int64_t da = sizes_a[i] = i < rank - a.rank() ? 1 : a[i - (rank - a.rank())];
    const int64_t db = sizes_b[i] = i < rank - b.rank() ? 1 : b[i - (rank - b.rank())];
    if (da != db && da != 1 && db != 1) {
      return absl::InvalidArgumentError(
          absl::StrCat("shapes ", a.ToString(), " and ", b.ToString(), " do not broadcast"));
    }
    plan.out.Append(da == 1 ? db : da);
  }
  // From the innermost axis outwards: drop axes of size 1, merge an axis into the one inside it
  // where both operands allow it.
  int64_t step_a = 1, step_b = 1;
  int count = 0;
  int64_t size[kMaxBroadcastAxes], stride_a[kMaxBroadcastAxes], stride_b[kMaxBroadcastAxes];
  for (int i = rank - 1; i >= 0; --i) {
    const int64_t n = plan.out[i];
    if (n == 1) continue;
    const int64_t sa = sizes_a[i] == 1 ? 0 : step_a;
    const int64_t sb = sizes_b[i] == 1 ? 0 : step_b;
    if (count > 0 && sa == stride_a[count - 1] * size[count - 1] &&
        sb == stride_b[count - 1] * size[count - 1]) {
      size[count - 1] *= n;
    } else {
      size[count] = n;
      stride_a[count] = sa;
      stride_b[count] = sb;
      ++count;
    }
    step_a *= sizes_a[i];
    step_b *= sizes_b[i];
  }
  if (count == 0) {
    size[0] = 1;
    stride_a[0] = stride_b[0] = 1;
    count = 1;
  }
  plan.rank = count;
  for (int i = 0; i < count; ++i) {
    plan.size[i] = size[count - 1 - i];
    plan.stride_a[i] = stride_a[count - 1 - i];
    plan.stride_b[i] = stride_b[count - 1 - i];
  }
  return plan;
}

}  // namespace mu
