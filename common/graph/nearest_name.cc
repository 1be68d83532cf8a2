#include "common/graph/nearest_name.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace mu {
namespace {

// Levenshtein's distance, one row of the table at a time.
size_t EditDistance(absl::string_view a, absl::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t substituted = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substituted});
    }
  }
  return row[b.size()];
}

// Names come from outside; a huge one is near to nothing and not worth the quadratic time.
constexpr size_t kLongestName = 200;

}  // namespace

std::string NearestName(absl::string_view name, const std::vector<std::string>& candidates) {
  std::string nearest;
  if (name.size() > kLongestName) return nearest;
  size_t best = kLongestName;
  for (const std::string& candidate : candidates) {
    const size_t allowed = std::max<size_t>(2, std::max(name.size(), candidate.size()) / 3);
    const size_t distance = EditDistance(name, candidate);
    if (distance <= allowed && distance < candidate.size() && distance < best) {
      best = distance;
      nearest = candidate;
    }
  }
  return nearest;
}

std::string DidYouMean(absl::string_view name, const std::vector<std::string>& candidates) {
  const std::string nearest = NearestName(name, candidates);
  return nearest.empty() ? "" : absl::StrCat("; did you mean \"", nearest, "\"?");
}

}  // namespace mu
