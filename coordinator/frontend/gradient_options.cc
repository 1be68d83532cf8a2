#include "coordinator/frontend/gradient_options.h"

#include <cmath>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace mu {

absl::Status CheckGradientOptions(const GradientOptions& options) {
  const std::pair<const char*, float> values[] = {
      {"l1", options.l1},
      {"l2", options.l2},
      {"clip_by_value", options.clip_by_value},
      {"clip_by_norm", options.clip_by_norm},
      {"clip_by_global_norm", options.clip_by_global_norm},
      {"weight_decay", options.weight_decay}};
  for (const auto& [name, value] : values) {
    if (value >= 0 && std::isfinite(value)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(name, " must be a finite number that is not negative, got ", value));
  }
  return absl::OkStatus();
}

bool MatchesName(absl::string_view pattern, absl::string_view name) {
  return absl::ConsumeSuffix(&pattern, "*") ? absl::StartsWith(name, pattern) : name == pattern;
}

}  // namespace mu
