// The latest so many values that were inserted. Not synchronised.
#pragma once

#include <algorithm>
#include <cstddef>
#include <deque>

namespace mu {

template <typename T>
class RecentSet {
 public:
  explicit RecentSet(size_t most) : most_(most) {}

  void Insert(const T& value) {
    values_.push_back(value);
    if (values_.size() > most_) values_.pop_front();
  }
  bool Contains(const T& value) const {
    return std::find(values_.begin(), values_.end(), value) != values_.end();
  }

 private:
  const size_t most_;
  std::deque<T> values_;  // oldest first
};

}  // namespace mu
