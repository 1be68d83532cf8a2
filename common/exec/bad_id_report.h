// What a step says of an id that its table does not have.
#pragma once

#include "absl/status/status.h"
#include "common/exec/plan.h"
#include "common/exec/run.h"

namespace mu {

// `status` is why the rows could not be pulled. If it is an id outside of a table: the same with
// the place of the lookup in the user's program (of several of one table the first) and the batch's
// columns that hold the id. Anything else stays as it is.
absl::Status WithPlaceOfBadId(const Plan& plan, const Run& run, const absl::Status& status);

}  // namespace mu
