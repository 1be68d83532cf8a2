// What will happen, by virtual time: a heap of indices into a pool that is used over and over.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <utility>
#include <variant>
#include <vector>

#include "tests/sim/message.h"

namespace mu::sim {

struct Timer {
  Slot slot = kNowhere;      // of the process; kNowhere: of the cluster itself
  uint64_t incarnation = 0;  // 0: of whichever process runs there
  const char* name = "";     // for traces; "": not told
  std::function<void()> run;
};
using Happening = std::variant<Message, Timer>;

class EventQueue {
 public:
  void Clear() {
    heap_.clear();
    free_.clear();
    pool_.clear();
    sequence_ = 0;
  }

  // What is of the same time happens in the order in which it was added.
  template <typename T>  // Message, Timer or Happening
  void Add(Time at, T&& happening) {
    uint32_t place = static_cast<uint32_t>(pool_.size());
    if (free_.empty()) {
      pool_.emplace_back(std::forward<T>(happening));
    } else {
      place = free_.back();
      free_.pop_back();
      pool_[place] = std::forward<T>(happening);
    }
    heap_.push_back({at, sequence_++, place});
    std::push_heap(heap_.begin(), heap_.end(), Later);
  }

  Time next() const { return heap_.front().at; }

  Happening Take() {
    std::pop_heap(heap_.begin(), heap_.end(), Later);
    const uint32_t place = heap_.back().place;
    heap_.pop_back();
    free_.push_back(place);
    return std::move(pool_[place]);
  }

 private:
  struct Entry {
    Time at;
    uint64_t sequence;
    uint32_t place;
  };
  static bool Later(const Entry& a, const Entry& b) {
    return a.at != b.at ? a.at > b.at : a.sequence > b.sequence;
  }

  std::vector<Entry> heap_;
  std::vector<Happening> pool_;
  std::vector<uint32_t> free_;
  uint64_t sequence_ = 0;
};

}  // namespace mu::sim
