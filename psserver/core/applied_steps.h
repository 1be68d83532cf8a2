// Which pushes a state contains: a set of (function, step, part). A function's steps mostly come in
// order, so they are kept as ranges and cost a few words for a function, not a word for a step.
//
// A value: copyable, not synchronised.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

namespace mu {

struct PushId {
  uint64_t function = 0;
  uint32_t step = 0;
  uint32_t part = 0;
  friend auto operator<=>(const PushId&, const PushId&) = default;
};

class AppliedSteps {
 public:
  // What a range takes, with its function, of which most have one: measured, in whole processes.
  static constexpr size_t kEntryBytes = 224;

  // Steps [begin, end) of a function's part.
  struct Range {
    uint64_t function = 0;
    uint32_t part = 0;
    uint64_t begin = 0;
    uint64_t end = 0;
    friend auto operator<=>(const Range&, const Range&) = default;
  };

  // False if it was there.
  bool Add(const PushId& push);
  void AddRange(const Range& range);
  bool Contains(const PushId& push) const;
  void ForgetBelow(uint64_t function);
  void Clear();

  bool empty() const { return functions_.empty(); }
  size_t entries() const { return entries_; }  // ranges
  uint64_t steps() const { return steps_; }
  // The smallest of which a step is here; there must be one.
  uint64_t oldest_function() const { return functions_.begin()->first.first; }
  // Ascending and disjoint, so that equal sets give equal ranges.
  std::vector<Range> Ranges() const;
  // A function with about as many before it as after it; 0 if there is none.
  uint64_t MiddleFunction() const;

 private:
  using FunctionPart = std::pair<uint64_t, uint32_t>;
  using Steps = std::map<uint64_t, uint64_t>;  // begin to end, apart from one another

  std::map<FunctionPart, Steps> functions_;
  size_t entries_ = 0;
  uint64_t steps_ = 0;
};

}  // namespace mu
