// Zeroed memory, 64-byte aligned, that costs nothing until it is touched: large blocks are mapped,
// so the kernel gives pages at the first write. Not synchronised.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "common/env/work_progress.h"

namespace mu {

class ZeroMemory {
 public:
  ZeroMemory() = default;
  ZeroMemory(ZeroMemory&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  ZeroMemory& operator=(ZeroMemory&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~ZeroMemory() {
    if (data_ == nullptr) return;
    WorkProgress::Moved(1);  // the kernel takes seconds for a state of many gigabytes
    if (Mapped(size_)) {
      munmap(data_, size_);
    } else {
      std::free(data_);
    }
  }

  // RESOURCE_EXHAUSTED if the system has no room for it.
  static absl::StatusOr<ZeroMemory> Allocate(size_t size) {
    ZeroMemory memory;
    size = (size + 63) / 64 * 64;
    if (size == 0) return memory;
    void* data;
    if (Mapped(size)) {
      data = mmap(nullptr, size, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
      if (data == MAP_FAILED) data = nullptr;
    } else {
      data = std::aligned_alloc(64, size);
      if (data != nullptr) std::memset(data, 0, size);
    }
    if (data == nullptr) {
      return absl::ResourceExhaustedError(
          absl::StrCat("no memory for ", size, " bytes of parameters"));
    }
    memory.data_ = static_cast<char*>(data);
    memory.size_ = size;
    return memory;
  }

  char* data() const { return data_; }
  size_t size() const { return size_; }

 private:
  static constexpr bool Mapped(size_t size) { return size >= (64 << 10); }

  char* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace mu
