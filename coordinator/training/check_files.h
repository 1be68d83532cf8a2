// What is wrong with a dataset's files, as far as their beginnings tell.
#pragma once

#include <string>
#include <vector>

#include "proto/dataset.pb.h"

namespace mu {

// What the model takes columns for.
struct CheckedLabels {
  std::vector<std::string> binary;    // labels of two classes
  std::vector<std::string> required;  // labels of which not all can be missing
  bool trains = false;                // labels of one class alone are a problem, else a note
};

// Opens every file (patterns are expanded), reads its header and its first record, of the first few
// files a hundred records, and parses them as training will. Each problem is a sentence. With
// `files_elsewhere` (a cluster, whose workers read the data) a file that is not to be seen from
// here is not looked at.
// `notes`, if it is there, gets what may be meant but deserves a look: a column without a value, or
// a vocabulary without a text, in the records that were read.
std::vector<std::string> CheckFiles(const muster::DatasetProto& dataset, bool files_elsewhere,
                                    const CheckedLabels& labels = {},
                                    std::vector<std::string>* notes = nullptr);

// Whether all labels of the files are other than the column's `positive` texts. Reads to the first
// positive one, or to the end.
struct NonePositive {
  // What they are, and what to do; empty if there are positive ones, or nothing is to be seen of
  // them from here.
  std::string why;
  bool all = false;  // all files could be read from here
};
NonePositive LookForPositives(const muster::DatasetProto& dataset);

}  // namespace mu
