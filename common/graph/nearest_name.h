// "Did you mean ...?" for names in error messages.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace mu {

// The candidate with the smallest edit distance to `name` (the first of several); empty if none is
// near enough (more than a third of the longer one's letters, at least two, differ).
std::string NearestName(absl::string_view name, const std::vector<std::string>& candidates);

// "; did you mean \"X\"?", or nothing.
std::string DidYouMean(absl::string_view name, const std::vector<std::string>& candidates);

}  // namespace mu
