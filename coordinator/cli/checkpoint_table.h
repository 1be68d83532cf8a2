// What `coordinator checkpoints` shows: text out of manifests.
#pragma once

#include <string>
#include <vector>

#include "proto/checkpoint.pb.h"

namespace mu {

struct CheckpointRow {
  std::string path;
  int64_t written_ns = 0;  // since 1970; 0: not known
  std::string problem;     // empty: none was found
  muster::CheckpointProto manifest;
};

// One line for each checkpoint.
std::string CheckpointTable(const std::vector<CheckpointRow>& rows);
// What one holds: files, variables and tables, and where the job stood.
std::string CheckpointDescription(const CheckpointRow& row);

// "1.5 GB"; powers of 1000.
std::string FormatBytes(uint64_t bytes);

}  // namespace mu
