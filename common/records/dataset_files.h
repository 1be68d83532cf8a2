// The files of a dataset by name.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/base/status.h"
#include "proto/dataset.pb.h"

namespace mu {

using FileList = google::protobuf::RepeatedPtrField<std::string>;

// Leaves out what is named again, by whichever path leads to the file (FileIdentity): the first
// name stays. The lists are read in lockstep, so an n is left out if the n-th files of all lists
// are, all together, those of a lower n. Lists that are not equally long are looked at one by one.
void LeaveOutRepeatedFiles(const std::vector<FileList*>& lists);

// Replaces the patterns among the files and companions by the files that match them. Each problem
// is a sentence: a pattern that nothing matches, a list of companions that has another number of
// files than the first. Returns the first, with its code.
absl::Status ExpandDatasetFiles(muster::DatasetProto* dataset,
                                std::vector<std::string>* problems = nullptr);

// The files that are read in lockstep for file `index`; files and companions are equally many.
std::vector<std::string> PartsOfFile(const muster::DatasetProto& dataset, int index);

}  // namespace mu
