// What a job has on its servers: where each partition is, how large it is, what was asked of it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "common/tensor/dtype.h"
#include "common/tensor/shape.h"
#include "proto/psserver.pb.h"
#include "proto/table.pb.h"

namespace mu {

// Of a partition, or of several together. Counts begin anew when a server starts or restores its
// state.
struct ParameterLoad {
  uint64_t bytes = 0;         // values and slots in use
  uint64_t rows = 0;          // of tables: those that exist
  uint64_t reads = 0;         // calls; a product counts as one
  uint64_t read_bytes = 0;    // that were sent; of products also those that came
  uint64_t updates = 0;       // calls
  uint64_t update_bytes = 0;  // of updates as they were applied: of a variable the whole partition

  void Add(const ParameterLoad& other);
};

struct PartitionInfo {
  uint32_t server = 0;    // its index
  int64_t first_row = 0;  // of a variable; a table's partition P of N has the ids with id % N == P
  ParameterLoad load;
};

struct ParameterInfo {
  std::string name;
  bool is_table = false;
  DType dtype = kFloat32;
  Shape shape;  // a table's: [rows, dim]
  bool trainable = false;
  std::vector<PartitionInfo> partitions;

  ParameterLoad Total() const;
};

// All variables, then all tables, in the order of their creation. `stats`: of all servers.
std::vector<ParameterInfo> ParameterInfosOf(const muster::RoutingProto& routing,
                                            const std::vector<muster::PsStatsReply>& stats);

// What PlaceByLoad takes: the bytes that were read and updated, by name.
std::map<std::string, double> LoadOf(const std::vector<ParameterInfo>& parameters);

// By server's index.
std::map<uint32_t, ParameterLoad> LoadByServer(const std::vector<ParameterInfo>& parameters);

// A table as text: a line for each variable and table, then one for each server.
std::string ParametersTable(const std::vector<ParameterInfo>& parameters);

}  // namespace mu
