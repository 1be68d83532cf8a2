// Reading the raw part of data-plane frames: the bytes come from outside, so every size is checked
// against what is left. Not thread safe.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/rpc/buffer.h"
#include "common/rpc/frame.h"

namespace mu {

// A payload whose first byte is aligned to 16: as it is, or copied where the transport delivered it
// elsewhere.
class AlignedPayload {
 public:
  explicit AlignedPayload(absl::Span<const char> bytes) : bytes_(bytes) {
    if (reinterpret_cast<uintptr_t>(bytes.data()) % 16 == 0 || bytes.empty()) return;
    copy_ = std::make_unique<MutableBuffer>(bytes.size());
    std::memcpy(copy_->data(), bytes.data(), bytes.size());
    bytes_ = absl::MakeConstSpan(copy_->data(), bytes.size());
  }
  absl::Span<const char> bytes() const { return bytes_; }

 private:
  absl::Span<const char> bytes_;
  std::unique_ptr<MutableBuffer> copy_;
};

class PayloadReader {
 public:
  explicit PayloadReader(absl::Span<const char> bytes) : bytes_(bytes) {}

  // The next `count` values of T, which begin at a multiple of sizeof(T) as long as all reads
  // before did.
  template <typename T>
  absl::StatusOr<const T*> Take(uint64_t count) {
    if (count > (bytes_.size() - position_) / sizeof(T)) {
      return absl::InvalidArgumentError("the request's payload is shorter than its header says");
    }
    const T* values = reinterpret_cast<const T*>(bytes_.data() + position_);
    position_ += count * sizeof(T);
    return values;
  }
  // Skips to the next multiple of 8.
  void Align() { position_ = std::min<size_t>(bytes_.size(), PaddedTo8(position_)); }
  absl::Status ExpectEnd() const {
    if (position_ == bytes_.size()) return absl::OkStatus();
    return absl::InvalidArgumentError("the request's payload is longer than its header says");
  }

 private:
  const absl::Span<const char> bytes_;
  size_t position_ = 0;
};

}  // namespace mu
