// Identity of a function's graph.
#pragma once

#include "common/base/ids.h"
#include "proto/graph.pb.h"

namespace mu {

// A 64-bit hash of what the function computes: ops, attributes (in order of their names), edges,
// arguments, returns and dataset; not its name nor the names and locations of nodes. The same on
// every machine and build.
Fingerprint FingerprintOf(const muster::FunctionProto& function);

}  // namespace mu
