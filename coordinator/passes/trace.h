// From a user's lambda to a graph that workers run.
#pragma once

#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "coordinator/frontend/builder.h"
#include "proto/graph.pb.h"

namespace mu {

// Runs `build` once, adds the gradients of its Minimize calls, lowers parameters' ops, and
// verifies. The first error of tracing comes out with the op's file:line, kind ERROR_USER:
// INVALID_ARGUMENT. Any thread; traces may be nested. `seed` is the job's: the random numbers of a
// step are a function of it, the function's name, the op's number and the step's.
absl::StatusOr<pb::FunctionProto> Trace(const std::string& name,
                                        const std::function<void(FunctionBuilder&)>& build,
                                        uint64_t seed = 1);

// The same for a function that only computes what it returns: as it is traced, without what no
// return depends on. INVALID_ARGUMENT also if it minimizes or changes parameters.
absl::StatusOr<pb::FunctionProto> TraceForward(const std::string& name,
                                               const std::function<void(FunctionBuilder&)>& build);

}  // namespace mu
