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

// Of a dataset none of whose labels was positive: what the first labels of its files are, and what
// to do. Empty if nothing is to be seen of them from here.
std::string WhyNoneIsPositive(const muster::DatasetProto& dataset);

}  // namespace mu
