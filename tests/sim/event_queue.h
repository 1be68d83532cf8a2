// What will happen, by virtual time: a heap of indices into a pool of messages that is used over
// and over.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "tests/sim/message.h"

namespace mu::sim {

class EventQueue {
 public:
  void Clear() {
    heap_.clear();
    free_.clear();
    pool_.clear();
    sequence_ = 0;
  }

  // Events of the same time happen in the order in which they were added.
  void Add(Time at, const Message& message) {
    uint32_t place;
    if (free_.empty()) {
      place = static_cast<uint32_t>(pool_.size());
      pool_.push_back(message);
    } else {
      place = free_.back();
      free_.pop_back();
      pool_[place] = message;
    }
    heap_.push_back({at, sequence_++, place});
    std::push_heap(heap_.begin(), heap_.end(), Later);
  }

  bool empty() const { return heap_.empty(); }
  Time next() const { return heap_.front().at; }

  Message Take() {
    std::pop_heap(heap_.begin(), heap_.end(), Later);
    const uint32_t place = heap_.back().place;
    heap_.pop_back();
    free_.push_back(place);
    return pool_[place];
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
  std::vector<Message> pool_;
  std::vector<uint32_t> free_;
  uint64_t sequence_ = 0;
};

}  // namespace mu::sim
