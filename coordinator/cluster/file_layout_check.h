// What a worker says of a data file, checked before the coordinator plans with it. Pure.
#pragma once

#include "absl/status/status.h"
#include "proto/dataset.pb.h"

namespace mu {

// INTERNAL if the layout contradicts itself or the dataset's block_records: a plan has a block for
// each place in it, so a wrong number of records would make plans of any size.
absl::Status CheckFileLayout(const muster::DatasetProto& dataset,
                             const muster::FileLayoutProto& layout);

}  // namespace mu
