// Bytes on their way through the transport: contiguous, shared, read only. Free of gRPC.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"
#include "common/base/huge_pages.h"

namespace mu {

class Buffer {
 public:
  Buffer() = default;
  Buffer(std::shared_ptr<const void> owner, const char* data, size_t size)
      : owner_(std::move(owner)), data_(data), size_(size) {}
  explicit Buffer(std::string bytes) {
    auto owner = std::make_shared<const std::string>(std::move(bytes));
    data_ = owner->data();
    size_ = owner->size();
    owner_ = std::move(owner);
  }

  const char* data() const { return data_; }
  size_t size() const { return size_; }
  absl::string_view view() const { return absl::string_view(data_, size_); }
  const std::shared_ptr<const void>& owner() const { return owner_; }

 private:
  std::shared_ptr<const void> owner_;
  const char* data_ = nullptr;
  size_t size_ = 0;
};

// A buffer being written; becomes a Buffer without a copy.
class MutableBuffer {
 public:
  explicit MutableBuffer(size_t size)
      : memory_(AllocateLarge(64, (size + 64) / 64 * 64), std::free), size_(size) {}
  char* data() { return static_cast<char*>(memory_.get()); }
  size_t size() const { return size_; }
  Buffer Finish() && {
    const char* data = static_cast<const char*>(memory_.get());
    return Buffer(std::move(memory_), data, size_);
  }

 private:
  std::shared_ptr<void> memory_;
  size_t size_;
};

}  // namespace mu
