// What a variable and a table may be: limits and checks that the coordinator, clients and servers
// share. Pure.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "proto/table.pb.h"

namespace mu {

// Of a table.
inline constexpr uint32_t kMostTablePartitions = 1 << 20;
inline constexpr uint32_t kMostTableDim = 1 << 16;
inline constexpr uint64_t kMostTableRows = (uint64_t{1} << 62) - 1;
// A server reserves address space for all rows of a partition, with their slots, and a process has
// 2^47 bytes of it.
inline constexpr uint64_t kMostTablePartitionBytes = uint64_t{1} << 46;

// INVALID_ARGUMENT, saying what is wrong, unless type, shape, partitions, initializer and optimizer
// are sane. Placement is not looked at, nor are names: CheckVariable and CheckTable (routing.h)
// look at the name and begin the message with it.
absl::Status CheckVariableParts(const muster::VariableProto& variable);
absl::Status CheckTableParts(const muster::TableProto& table);

}  // namespace mu
