// Which server holds which partition. Pure and deterministic: the same routing gives the same
// placement.
#pragma once

#include "absl/status/status.h"
#include "proto/table.pb.h"

namespace mu {

// Gives every partition without a server one of routing->servers, in the order of the variables and
// tables; what is placed already stays. A variable's partition goes to the server that has the
// fewest bytes so far (lowest index among equals); a table's partitions go round, each table
// beginning where the bytes are fewest, so that small rests do not all land on server 0. Fills
// partition_starts and partitions where they are missing. FAILED_PRECONDITION without servers,
// INVALID_ARGUMENT if a placement's length does not fit its partitions.
absl::Status PlaceAll(muster::RoutingProto* routing);

}  // namespace mu
