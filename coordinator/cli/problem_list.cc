#include "coordinator/cli/problem_list.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/printable.h"
#include "common/base/status.h"

namespace mu {

std::string Place::ToString() const {
  return line > 0 ? absl::StrCat(source, ":", line, ":", column) : source;
}

std::string Problem::ToString() const {
  // A message may quote a file's bytes.
  return PrintableLines(
      absl::StrCat(place.ToString(), ": ", message, remedy.empty() ? "" : "; ", remedy));
}

void ProblemList::Add(Place place, std::string message, std::string remedy) {
  source_order_.emplace(place.source, source_order_.size());
  const auto key = [this](const Place& p) {
    return std::make_tuple(source_order_.at(p.source), p.line, p.column);
  };
  const auto position =
      std::upper_bound(problems_.begin(), problems_.end(), place,
                       [&](const Place& a, const Problem& b) { return key(a) < key(b.place); });
  problems_.insert(position, {std::move(place), std::move(message), std::move(remedy)});
}

void ProblemList::Add(Place place, const absl::Status& status) {
  if (!status.ok()) Add(std::move(place), std::string(status.message()));
}

std::string ProblemList::ToString() const {
  std::string text;
  for (const Problem& problem : problems_) absl::StrAppend(&text, problem.ToString(), "\n");
  return text;
}

absl::Status ProblemList::ToStatus() const {
  if (empty()) return absl::OkStatus();
  pb::ErrorDetail detail;
  detail.set_kind(pb::ERROR_USER);
  detail.set_role(pb::ROLE_COORDINATOR);
  std::string text = ToString();
  text.pop_back();
  return WithDetail(absl::InvalidArgumentError(text), detail);
}

}  // namespace mu
