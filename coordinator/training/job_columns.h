// From the columns of a job's source to those of a dataset. Pure.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "common/base/status.h"
#include "common/graph/dataset_schema.h"
#include "proto/job.pb.h"

namespace mu {

// The buckets of a hashed column without `buckets`: the rows of the model's tables for it, or
// 100,000.
int64_t BucketsOf(const muster::ModelProto& model, const std::string& column);

// The key that names a column to the model, such as model.mlp.features[2].column or
// model.mlp.label_column; empty: none does, or the model is a user's own.
std::string KeyOfColumn(const muster::ModelProto& model, const std::string& column);

// Of csv, jsonl and tfrecord. INVALID_ARGUMENT: a kind that there is not.
absl::Status FillColumns(const muster::SourceProto& source, const muster::ModelProto& model,
                         FieldColumnList* columns);

}  // namespace mu
