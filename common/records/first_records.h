// What the readers will say of the beginning of a file, found out without reading the rest of it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "proto/dataset.pb.h"

namespace mu {

struct FirstRecords {
  // What the reader will refuse, each "FILE:LINE: what is wrong; what to do" (or "FILE ..." where
  // it has no lines).
  std::vector<std::string> problems;
  // That were found, good or bad, the header not among them; at most what was asked for.
  uint64_t records = 0;
};

// Opens the file (plain, gzip or zstd), finds the dataset's columns in its header, and parses those
// of its first `most` records that the dataset keeps, with the parser that training uses. The
// dataset's format must have passed CheckFormat(); its list of files is not looked at. Bad records
// are problems if the dataset fails by them; if it skips them, only a file none of whose first
// `most` records is good.
FirstRecords ReadFirstRecords(const muster::DatasetProto& dataset, const std::string& path,
                              uint64_t most);

}  // namespace mu
