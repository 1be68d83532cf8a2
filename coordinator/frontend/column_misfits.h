// Where the columns of a data set and those that a model reads do not fit together, told so that
// whoever writes a job file knows what to write. Pure.
#pragma once

#include <string>
#include <vector>

#include "coordinator/frontend/model.h"
#include "proto/dataset.pb.h"

namespace mu {

struct ColumnMisfit {
  // A list or a sequence by its own name, without .values and the like.
  std::string column;
  // The key of the data's column that is wrong, such as "missing_id". Empty: the column itself,
  // which the model names.
  std::string data_key;
  std::string message;  // a sentence
  std::string remedy;   // may be empty
};

// A misfit for each column that the model reads for a purpose and the dataset lacks, or has in
// another form, or whose ids may be beyond the model's table.
std::vector<ColumnMisfit> ColumnMisfits(const Model& model, const muster::DatasetProto& dataset,
                                        DataPurpose purpose);

}  // namespace mu
