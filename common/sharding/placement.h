// Which server holds which partition. Deterministic: the same routing gives the same placement.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "proto/table.pb.h"

namespace mu {

// The default. A variable's partition goes to the server that has the fewest bytes so far, with the
// optimizer's slots (lowest index among equals); a table's partitions go round, each table
// beginning where the bytes are fewest, so that small rests do not all land on server 0.
struct PlaceByBytes {};

// One partition after the other on one server after the other, over all variables and tables.
struct PlaceRoundRobin {};

// As by bytes, but what is balanced is what a variable or table causes: a number by name, in any
// unit, such as the bytes that an earlier run moved (LoadOf, coordinator/cluster/parameter_info.h).
// Its partitions share it by their rows. What has no number counts by its bytes, as much as bytes
// of those that have one do on average; what has a smaller number than a hundredth of that counts
// as such a hundredth, so that what was never used does not gather on one server.
struct PlaceByLoad {
  std::map<std::string, double> load;
};

// What a user's function decides upon: one partition, after all before it were placed.
struct PlacementRequest {
  std::string name;
  bool is_table = false;
  uint32_t partition = 0;
  uint32_t partitions = 1;
  uint64_t bytes = 0;  // of a table: if all rows exist
  struct Server {
    uint32_t index = 0;
    uint64_t bytes = 0;  // of what it was given so far
  };
  std::vector<Server> servers;  // by index; at least one
};
// Returns the index of a server. Pure: a restarted coordinator asks again. Called on a thread of
// the coordinator: it may not call the coordinator.
using PlacementFunction = std::function<uint32_t(const PlacementRequest&)>;

using Placement = std::variant<PlaceByBytes, PlaceRoundRobin, PlaceByLoad, PlacementFunction>;

// Gives every partition without a server one of routing->servers, in the order of the variables and
// tables; what is placed already stays. Fills partition_starts and partitions where they are
// missing. FAILED_PRECONDITION without servers, INVALID_ARGUMENT if a placement's length does not
// fit its partitions, if a load is negative or not finite, or if the function is empty or names a
// server that there is not.
absl::Status PlaceAll(muster::RoutingProto* routing, const Placement& placement = PlaceByBytes{});

}  // namespace mu
