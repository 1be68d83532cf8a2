// What is wrong with a dataset's files, as far as their beginnings tell.
#pragma once

#include <string>
#include <vector>

#include "proto/dataset.pb.h"

namespace mu {

// Opens every file (patterns are expanded), reads its header and its first record, of the first few
// files a hundred records, and parses them as training will. Each problem is a sentence. With
// `files_elsewhere` (a cluster, whose workers read the data) a file that is not to be seen from
// here is not looked at.
std::vector<std::string> CheckFiles(const muster::DatasetProto& dataset, bool files_elsewhere);

}  // namespace mu
