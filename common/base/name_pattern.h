// Patterns of names of variables and tables: `*` stands for any text, also an empty one; every
// other character for itself.
#pragma once

#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace mu {

bool MatchesPattern(absl::string_view name, absl::string_view pattern);

// What `name` is called after `from` was replaced by `to`: "old/*" to "new/*" makes "new/w" of
// "old/w". None if the name does not match. Each of the two has at most one `*`, and `to` has none
// without one in `from`.
std::optional<std::string> Renamed(absl::string_view name, absl::string_view from,
                                   absl::string_view to);

}  // namespace mu
