#include "common/base/name_pattern.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace mu {

bool MatchesPattern(absl::string_view name, absl::string_view pattern) {
  // Where the last `*` stood and how much of the name it has taken: only that one has to take more.
  size_t n = 0, p = 0, star = absl::string_view::npos, taken = 0;
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      taken = n;
    } else if (p < pattern.size() && pattern[p] == name[n]) {
      ++p;
      ++n;
    } else if (star != absl::string_view::npos) {
      p = star + 1;
      n = ++taken;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

std::optional<std::string> Renamed(absl::string_view name, absl::string_view from,
                                   absl::string_view to) {
  const size_t star = from.find('*');
  if (star == absl::string_view::npos)
    return name == from ? std::optional<std::string>(to) : std::nullopt;
  const absl::string_view before = from.substr(0, star), after = from.substr(star + 1);
  if (name.size() < before.size() + after.size() || !absl::StartsWith(name, before) ||
      !absl::EndsWith(name, after))
    return std::nullopt;
  const absl::string_view text =
      name.substr(before.size(), name.size() - before.size() - after.size());
  const size_t place = to.find('*');
  if (place == absl::string_view::npos) return std::string(to);
  return absl::StrCat(to.substr(0, place), text, to.substr(place + 1));
}

}  // namespace mu
