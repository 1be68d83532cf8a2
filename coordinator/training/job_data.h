// From a job file's `data` section to datasets. Pure.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/status.h"
#include "coordinator/frontend/model.h"
#include "proto/dataset.pb.h"
#include "proto/job.pb.h"

namespace mu {

// The dataset of a purpose; its files may still be patterns. NOT_FOUND if the job has none (the
// message says which key).
absl::StatusOr<pb::DatasetProto> DatasetOf(const pb::JobProto& job, DataPurpose purpose);

// Gives the columns of ids that the model bounds that bound, where they have none or a larger one.
void BoundIds(const Model& model, pb::DatasetProto* dataset);

// Removes the columns that the model reads in evaluation only, such as its label: data to predict
// need not have them. Of csv, jsonl and tfrecord (unless a cross takes one), and of arrays with
// their files; the label of criteo_tsv, libsvm and libffm may be there or not. Those among
// `wanted`, the columns to be copied beside the predictions, stay.
void DropLabels(const Model& model, const std::vector<std::string>& wanted,
                muster::DatasetProto* dataset);

// Of csv, jsonl and tfrecord: adds the texts that the fields of these columns have in the data,
// each as a list TextColumnOf(NAME), so that they can be copied as they stand there. Columns of
// several values, crosses and names that there are not stay without. INVALID_ARGUMENT "--columns:
// ...": another column has the name of such a list.
absl::Status WithTexts(const std::vector<std::string>& wanted, muster::DatasetProto* dataset);

}  // namespace mu
