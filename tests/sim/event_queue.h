// What will happen, by virtual time: a heap of indices into a pool that is used over and over.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <queue>
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
  // What is of the same time happens in the order in which it was added.
  template <typename T>  // Message, Timer or Happening
  void Add(Time at, T&& happening) {
    if (free_.empty()) {
      free_.push_back(static_cast<uint32_t>(pool_.size()));
      pool_.emplace_back();
    }
    const uint32_t place = free_.back();
    free_.pop_back();
    pool_[place] = std::forward<T>(happening);
    heap_.push({at, sequence_++, place});
  }

  Time next() const { return heap_.top().at; }

  Happening Take() {
    const uint32_t place = heap_.top().place;
    heap_.pop();
    free_.push_back(place);
    return std::move(pool_[place]);
  }

 private:
  struct Entry {
    Time at;
    uint64_t sequence;
    uint32_t place;
    friend auto operator<=>(const Entry&, const Entry&) = default;
  };

  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> heap_;
  std::vector<Happening> pool_;
  std::vector<uint32_t> free_;
  uint64_t sequence_ = 0;
};

}  // namespace mu::sim
