// Convolutions by oneDNN, on the calling thread.
#pragma once

#include <cstddef>
#include <memory>

#include "absl/status/statusor.h"
#include "common/exec/window.h"

namespace mu {

// What is computed, from the other two of images, filter and result.
enum class ConvolutionPart { kResult, kImagesGradient, kFilterGradient };

struct ConvolutionSizes {
  Windows windows;      // none empty
  int64_t filters = 0;  // channels of the result

  friend bool operator==(const ConvolutionSizes&, const ConvolutionSizes&) = default;
};

// One part of a convolution of given sizes: chosen and compiled for this processor once, used by
// one thread at a time.
//
// Images are [batch, height, width, channels], filters [height, width, channels, filters]. Results
// are the same bits for the same sizes on the same processor, whatever ran before; another kind of
// processor may add in another order.
class OnednnConvolution {
 public:
  // UNIMPLEMENTED if oneDNN knows no way, RESOURCE_EXHAUSTED if it has no memory.
  static absl::StatusOr<std::unique_ptr<OnednnConvolution>> Make(ConvolutionPart part,
                                                                 const ConvolutionSizes& sizes);
  ~OnednnConvolution();

  // Memory that Run needs beside its arguments: oneDNN's own, and a filter in the order that it
  // likes.
  size_t scratch_bytes() const;

  // kResult: first = images, second = filter; kImagesGradient: dy, filter; kFilterGradient: dy,
  // images. `scratch` has scratch_bytes(), aligned to 64. INTERNAL if oneDNN fails.
  absl::Status Run(const float* first, const float* second, float* out, void* scratch) const;

 private:
  struct Primitives;
  explicit OnednnConvolution(std::unique_ptr<Primitives> primitives);
  const std::unique_ptr<Primitives> primitives_;
};

}  // namespace mu
