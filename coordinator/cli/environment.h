// `${NAME}` and `${NAME:-default}` in the texts of a job file.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "coordinator/cli/config_node.h"
#include "coordinator/cli/problem_list.h"

namespace mu {

// The value of an environment variable; none where it is not set.
using Environment = std::function<std::optional<std::string>(const std::string& name)>;

Environment ProcessEnvironment();

// `text` with each `${NAME}` replaced by NAME's value and each `${NAME:-default}` by it or, where
// it is not set or empty, by the default, as in a shell. `$${` stands for `${` itself.
// INVALID_ARGUMENT for a NAME without a value or a brace that is not closed.
absl::StatusOr<std::string> ExpandEnvironment(const std::string& text,
                                              const Environment& environment);

// The same in every text of the tree. A quoted text that is all variables, such as "${EPOCHS:-3}",
// counts as plain afterwards, so numbers can come from the environment too.
void ExpandEnvironment(const Environment& environment, ConfigNode* node, ProblemList* problems);

}  // namespace mu
