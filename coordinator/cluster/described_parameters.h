// Variables and tables of a checkpoint or a model, as far as they are compared before one is loaded
// into the other. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "proto/checkpoint.pb.h"
#include "proto/table.pb.h"

namespace mu {

struct DescribedParameter {
  std::string what;  // "variable float32[3, 2]", "table of 100 rows of 4"
  bool is_table = false;
  // The first rows of a variable's, the number of a table's; empty: not known.
  std::vector<int64_t> partitions;
  std::string optimizer;
};

// By name.
std::map<std::string, DescribedParameter> DescribeParameters(const pb::CheckpointProto& saved);
std::map<std::string, DescribedParameter> DescribeParameters(const pb::RoutingProto& created);

}  // namespace mu
