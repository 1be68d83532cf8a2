// Settings of an optimizer: their defaults, what is wrong with them, and the slots that follow from
// them. Pure functions of the message and the table of optimizers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/optimizer/optimizer_table.h"
#include "common/optimizer/slot_layout.h"
#include "proto/optimizer.pb.h"

namespace mu {

// With every setting that was left out.
muster::OptimizerProto WithDefaults(muster::OptimizerProto optimizer);

// What a key that was left out is, as one would write it.
std::string DefaultText(const OptimizerKey& key);

struct OptimizerProblem {
  std::string key;      // of OptimizerProto, such as "adam.beta1", or "adam" alone
  std::string message;  // what is wrong, after the key
  std::string remedy;
  std::string given = {};  // the value; empty where there is none
};

// All that is wrong, in the order of the keys. No optimizer is no problem.
std::vector<OptimizerProblem> ProblemsOf(const muster::OptimizerProto& optimizer);
// The first of them as INVALID_ARGUMENT, also for what a newer program has set and this one does
// not know.
absl::Status CheckOptimizer(const muster::OptimizerProto& optimizer);

// Of rows of `width` values; none without an optimizer.
SlotLayouts SlotsOf(const muster::OptimizerProto& optimizer, uint64_t width);

// "adagrad", "no optimizer".
std::string OptimizerName(const muster::OptimizerProto& optimizer);
// What decides whether slots that one wrote are those that another needs: "sgd with slots
// momentum".
std::string DescribeOptimizer(const muster::OptimizerProto& optimizer);

// With its learning rate multiplied.
muster::OptimizerProto ScaleLearningRate(muster::OptimizerProto optimizer, float factor);

}  // namespace mu
