// What is wrong with a job, all of it at once: each problem with its place and what to do about it.
// Plain values, no thread safety.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace mu {

// Where a problem lies: a place in a file (line and column from 1), or, with line 0, a whole file
// or a flag of the command line such as `--set a.b`.
struct Place {
  std::string source;
  int line = 0;
  int column = 0;

  std::string ToString() const;  // source:line:column
  bool operator==(const Place&) const = default;
};

struct Problem {
  Place place;
  std::string message;  // what is wrong, without a full stop at the end
  std::string remedy;   // what to do, the same; may be empty

  std::string ToString() const;  // place: message; remedy
};

class ProblemList {
 public:
  void Add(Place place, std::string message, std::string remedy = "");
  // An error of a function as a problem of `place`; OK adds nothing.
  void Add(Place place, const absl::Status& status);

  bool empty() const { return problems_.empty(); }
  std::size_t size() const { return problems_.size(); }
  // Those of one source by line and column, sources in the order in which they came.
  const std::vector<Problem>& problems() const { return problems_; }

  std::string ToString() const;  // one line each
  // INVALID_ARGUMENT with all problems and the detail of a user's error; OK where there are none.
  absl::Status ToStatus() const;

 private:
  std::vector<Problem> problems_;
  std::map<std::string, std::size_t> source_order_;
};

}  // namespace mu
