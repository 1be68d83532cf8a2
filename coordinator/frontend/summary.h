// What a function consists of, as a table for people.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/frontend/builder.h"

namespace mu {

// One layer: the ops between one that reads variables or a table and the next.
struct LayerSummary {
  std::string name;        // the variables' names up to their last '/', or the table's name
  std::string op;          // that reads them
  std::string output;      // type and shape of the layer's last op, as "float32[?, 16]"
  int64_t parameters = 0;  // elements of what is named; of a table all rows
  // For one record: two for each multiply-add of products and convolutions; other ops, which are a
  // small part, are not counted.
  double flops = 0;
};

// The layers of what the function has traced so far, in the order of their first op; called before
// the function ends, it has no gradients. INVALID_ARGUMENT with the first error of the trace.
absl::StatusOr<std::vector<LayerSummary>> Summarize(FunctionBuilder& builder);

// The same as a text with one line for each layer and one for all of them.
absl::StatusOr<std::string> Summary(FunctionBuilder& builder);

}  // namespace mu
