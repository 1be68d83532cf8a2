// `--set a.b=c`: one value of the job file replaced or added from the command line.
#pragma once

#include <string>

#include "coordinator/cli/config_node.h"
#include "coordinator/cli/problem_list.h"

namespace mu {

// Sets `assignment` ("a.b=c"; c is YAML, so lists and maps work) in the tree. Maps on the way are
// made where they are missing. Places of the new nodes are "--set a.b"; so are those of the
// problems.
void ApplyOverride(const std::string& assignment, ConfigNode* root, ProblemList* problems);

}  // namespace mu
