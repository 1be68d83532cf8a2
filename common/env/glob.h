// Shell patterns to file names.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace mu {

// The files that match `pattern` (*, ?, [...]; a leading ~ is an ordinary character), sorted by
// bytes; directories are left out. A name without such characters is a pattern too, which matches
// one file. NOT_FOUND naming the pattern if there is none.
absl::StatusOr<std::vector<std::string>> ExpandGlob(const std::string& pattern);

// Whether there is something in the name to expand.
bool IsPattern(absl::string_view name);

// As ExpandGlob, but a name that is no pattern stays as it is: the file may be on another machine,
// and whoever reads it will say if it is not there.
absl::StatusOr<std::vector<std::string>> ExpandFiles(const std::string& pattern);

// Pattern after pattern; a file that several match stands where it came first.
absl::StatusOr<std::vector<std::string>> ExpandGlobs(absl::Span<const std::string> patterns);

}  // namespace mu
