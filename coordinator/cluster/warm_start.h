// A warm start: a model that begins with some values of another model's checkpoint. Which values
// they are. Pure.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/base/status.h"
#include "proto/checkpoint.pb.h"
#include "proto/psserver.pb.h"
#include "proto/table.pb.h"

namespace mu {

struct WarmStartSpec {
  // A variable or table called `from` in the checkpoint gives its values to the model's `to`.
  // `from` may have one `*`, which stands for any text, and which `to` then repeats.
  struct Rename {
    std::string from;
    std::string to;  // empty: from
  };
  std::vector<Rename> map = {};  // none: what both have under one name
  // Takes the optimizers' slots, too. Without it they have their initial values. The job's steps
  // are counted on from the other's then.
  bool slots = false;
};

struct WarmStartProblem {
  int entry = -1;      // of the map; -1: of the whole
  bool in_to = false;  // of its `to`, else of its `from`
  std::string message;
  std::string remedy;
};

// What the model's servers take, and whatever is wrong: a pattern that matches nothing, a name that
// the model has not, two sources of one, types and shapes that differ, slots of another optimizer.
// `model`: what has been created; partitions that are not known yet are not compared.
muster::TakenValuesProto PlanWarmStart(const WarmStartSpec& spec,
                                       const muster::CheckpointProto& checkpoint,
                                       const muster::RoutingProto& model,
                                       std::vector<WarmStartProblem>* problems);

// INVALID_ARGUMENT naming the first few problems; OK without one.
absl::Status ToStatus(const std::vector<WarmStartProblem>& problems);

// The variables and tables whose Adam lacks the correction of its moments' biases at first: their
// moments are new, but it counts steps of the job, which go on from the other's. Empty without
// slots.
std::vector<std::string> UncorrectedBiases(const muster::TakenValuesProto& taken,
                                           const muster::RoutingProto& model);

// What a name of the checkpoint is called in the model: none if nothing of it is taken, several if
// it begins several.
std::vector<std::string> NamesInModel(const WarmStartSpec& spec, const std::string& from);

}  // namespace mu
