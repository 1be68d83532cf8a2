#include "common/exec/kernel.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "common/exec/memory_budget.h"

namespace mu {

absl::Status NoMemory(const Shape& shape) {
  const MemoryBudget& budget = MemoryBudget::Process();
  const std::string limit =
      budget.limit() == 0
          ? ""
          : absl::StrCat(": the functions of this process have ", budget.used() >> 20, " MB of ",
                         budget.limit() >> 20, " MB that they may have together (--memory_limit)");
  return absl::ResourceExhaustedError(
      absl::StrCat("a tensor of shape ", shape.ToString(), " does not fit into memory", limit,
                   "; a smaller batch, or micro_batches, may help"));
}

void* ReserveFor(const Shape& shape, DType dtype, AlignedBuffer& buffer) {
  constexpr int64_t kMaxBytes = int64_t{1} << 44;  // keeps the product of sizes from overflowing
  int64_t bytes = static_cast<int64_t>(ElementSize(dtype));
  for (const int64_t dim : shape) {
    if (dim != 0 && bytes > kMaxBytes / dim) return nullptr;
    bytes *= dim;
  }
  return buffer.TryReserve(static_cast<size_t>(bytes));
}

void* KernelContext::Allocate(int i, const Shape& shape) {
  View& view = outputs_[i];
  const OutputPlace& place = places_[i];
  view.shape = shape;
  if (place.in_place_input >= 0) {
    const View& input = *inputs_[place.in_place_input];
    view.data = input.shape == shape ? input.data : ReserveFor(shape, view.dtype, *place.spare);
  } else {
    view.data = ReserveFor(shape, view.dtype, *place.buffer);
  }
  return view.data;
}

void KernelContext::Alias(int i, int input, const Shape& shape) {
  outputs_[i].shape = shape;
  outputs_[i].data = inputs_[input]->data;
}

absl::Status NoKernel(const NodeSpec& spec) {
  std::string types;
  for (const TensorSpec& input : spec.inputs) absl::StrAppend(&types, " ", input.ToString());
  return absl::InvalidArgumentError(
      absl::StrCat("there is no kernel of \"", spec.node.op(), "\" for inputs", types));
}

}  // namespace mu
