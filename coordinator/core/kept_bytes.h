// How much memory a set of entries takes, where entries share values: each value counts once,
// however many entries point to it. Pure; not synchronised.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>

namespace mu {

class KeptBytes {
 public:
  // What an entry has for itself.
  void Add(size_t bytes) { bytes_ += bytes; }
  void Remove(size_t bytes) { bytes_ -= bytes; }

  // An entry points to `value` (null: to nothing); `size` is called if no other one does yet.
  template <typename Size>
  void AddShared(const void* value, const Size& size) {
    if (value == nullptr) return;
    const auto [it, is_new] = shared_.try_emplace(value);
    if (is_new) bytes_ += it->second.bytes = size();
    ++it->second.entries;
  }
  void RemoveShared(const void* value) {
    const auto it = shared_.find(value);
    if (it == shared_.end() || --it->second.entries > 0) return;
    bytes_ -= it->second.bytes;
    shared_.erase(it);
  }

  uint64_t bytes() const { return bytes_; }

 private:
  struct Shared {
    uint64_t bytes = 0;
    uint64_t entries = 0;
  };
  uint64_t bytes_ = 0;
  std::map<const void*, Shared> shared_;
};

}  // namespace mu
