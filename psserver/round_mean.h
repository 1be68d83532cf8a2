// The mean of a synchronous round's pushes, as one update. Not thread safe; applying locks
// partition after partition.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "proto/psserver.pb.h"
#include "psserver/push.h"

namespace mu {

// A push of which the server keeps the gradients until its round is applied. Checked.
struct KeptPush {
  Buffer frame;  // what `plan` looks into
  // Keeps the partitions, even if Configure replaces the state while the round is applied.
  std::shared_ptr<const StoreDirectory> directory;
  PushPlan plan;
};

// Gradients are averaged with the weights of their contributions over the whole round, whether all
// of them touch the variable or row or not. Additions are added up, but for moving averages, which
// are averaged. A variable with a moving_part moves once, towards the mean of what the
// contributions bring; if some bring nothing, by less, as with a gradient. New values of floats are
// averaged as well, over the contributions that bring some; of those of whole numbers and of rows
// the last in the order of the data counts. Learning rates are those of the first contribution.
class RoundMean {
 public:
  // `weight`: of all contributions. `sum_rows`: gradients of rows are added up.
  RoundMean(uint64_t weight, bool sum_rows) : weight_(weight), sum_rows_(sum_rows) {}

  // In the order of the data; the push outlives this object.
  void Add(const PushPlan& push, uint32_t weight);
  // How many partitions were changed. Once.
  uint32_t Apply();

 private:
  struct Values {
    VariablePartition* partition = nullptr;
    StepRates rates;
    std::vector<uint64_t> sum;  // of the variable's type, in whole words
    float moving_part = 0;
    float share = 0;  // of the round's weight, in `sum`
  };
  struct NewValues {
    VariablePartition* partition = nullptr;
    double weight = 0;           // of the contributions in `mean`
    std::vector<double> mean;    // of floats
    const void* last = nullptr;  // of whole numbers
  };
  struct NewRows {
    VariablePartition* partition = nullptr;
    std::map<int64_t, const char*> values;
  };
  struct Rows {
    TablePartition* partition = nullptr;
    StepRates rates;
    std::vector<int64_t> ids;  // in the order in which they came
    std::vector<float> sums;   // [ids, dim]
    absl::flat_hash_map<int64_t, size_t> places;
  };
  void AddVariable(const PushPlan::VariablePart& part, float share);
  // Towards the mean of what is in `values`, which is lost.
  static void Move(Values* values);
  void AddNewValues(const PushPlan::VariablePart& part, uint32_t weight);
  void AddRows(const RowSegment& segment, const float* gradients, const StepRates& rates,
               float share);

  const uint64_t weight_;
  const bool sum_rows_;
  std::map<std::pair<PartitionKey, muster::VariableUpdate::Kind>, Values> variables_;
  std::map<PartitionKey, Rows> rows_;
  std::map<PartitionKey, NewValues> new_values_;
  std::map<PartitionKey, NewRows> new_rows_;
};

}  // namespace mu
