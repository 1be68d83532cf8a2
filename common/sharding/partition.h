// How variables and tables are cut into partitions: a function of their shapes alone, never of the
// number of servers. Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "proto/table.pb.h"

namespace mu {

// The first row (axis 0) of each partition, ascending from 0; at least one. A scalar is one row.
// Partitions' numbers of rows differ by one at most, so that fixed_shards, min_size and max_size
// hold for each.
std::vector<int64_t> PartitionStarts(const muster::VariableProto& variable);

// Partitions of a table in a cluster of `servers`: enough for even shares, 64 unless there are more
// than 4 servers.
uint32_t DefaultTablePartitions(uint32_t servers);

// Rows of `partition`: the ids of 0 .. rows-1 with id % partitions == partition.
constexpr uint64_t TablePartitionRows(uint64_t rows, uint32_t partitions, uint32_t partition) {
  return rows <= partition ? 0 : (rows - partition - 1) / partitions + 1;
}

// A variable as rows: axis 0 and what remains. A scalar is one row of one element.
struct RowLayout {
  int64_t rows = 1;
  int64_t elements_per_row = 1;
  int64_t bytes_per_row = 0;
};
RowLayout LayoutOf(const muster::VariableProto& variable);

}  // namespace mu
