#include "common/exec/kernel.h"

#include "absl/strings/str_cat.h"

namespace mu {

void* KernelContext::Output(int i, const Shape& shape) {
  View& view = outputs_[i];
  const OutputPlace& place = places_[i];
  view.shape = shape;
  if (place.in_place_input >= 0) {
    const View& input = *inputs_[place.in_place_input];
    view.data = input.shape == shape ? input.data : place.spare->Reserve(view.bytes());
  } else {
    view.data = place.buffer->Reserve(view.bytes());
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
