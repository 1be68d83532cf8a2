// The columns that a dataset's batches have. The front end types its batches by it, the readers
// fill them by it.
#pragma once

#include <string>
#include <vector>

#include "proto/dataset.pb.h"

namespace mu {

// In the order of proto/dataset.proto (criteo_tsv: label, dense, ids; csv: as its columns are
// listed, a list column as NAME.values and NAME.splits). Empty if no format is set.
std::vector<muster::ColumnSchema> SchemaOf(const muster::DatasetProto& dataset);

inline constexpr int kCriteoDense = 13;
inline constexpr int kCriteoCategorical = 26;

}  // namespace mu
