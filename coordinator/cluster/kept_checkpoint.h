// Checkpoints that stay, however many newer ones there are: those with a mark in their folder.
#pragma once

#include <string>

#include "absl/status/status.h"

namespace mu {

// Sets the mark, or removes it. NOT_FOUND if there is no such folder.
absl::Status MarkKept(const std::string& folder, bool kept);
bool IsKept(const std::string& folder);

}  // namespace mu
