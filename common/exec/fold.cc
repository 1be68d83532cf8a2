#include <cstring>

#include "common/exec/draft.h"
#include "common/graph/op_table.h"
#include "common/graph/verifier.h"

namespace mu {
namespace {

// Larger results than this are computed in each step instead of being kept by each compiled
// function.
constexpr int64_t kLargestFolded = int64_t{1} << 20;

bool MayFold(const Draft& draft, const DraftNode& node) {
  if (DefOf(draft.function->nodes(node.node)).random) return false;  // another value each step
  for (const int input : node.inputs) {
    if (!draft.IsConstant(input)) return false;
  }
  for (int i = 0; i < node.outputs; ++i) {
    const Shape& shape = draft.specs[node.first_output + i].shape;
    if (shape.IsFullyKnown() && shape.elements() > kLargestFolded) return false;
  }
  return !node.inputs.empty();
}

}  // namespace

absl::Status FoldConstants(Draft* draft) {
  for (DraftNode& node : draft->nodes) {
    if (!MayFold(*draft, node)) continue;
    std::vector<View> inputs, outputs(node.outputs);
    for (const int value : node.inputs) {
      Tensor& constant = draft->constants[value];
      inputs.push_back({constant.dtype(), constant.shape(), constant.raw()});
    }
    std::vector<const View*> pointers;
    for (const View& view : inputs) pointers.push_back(&view);
    std::vector<AlignedBuffer> buffers(node.outputs);
    std::vector<OutputPlace> places(node.outputs);
    for (int i = 0; i < node.outputs; ++i) {
      outputs[i].dtype = draft->specs[node.first_output + i].dtype;
      places[i].buffer = &buffers[i];
    }
    Scratch scratch;
    KernelContext context(pointers, absl::MakeSpan(outputs), absl::MakeSpan(places), &scratch);
    MU_RETURN_IF_ERROR(NodeError(*draft->function, node.node, node.kernel->Run(context)));
    for (int i = 0; i < node.outputs; ++i) {
      Tensor tensor(outputs[i].dtype, outputs[i].shape);
      if (outputs[i].bytes() > 0) std::memcpy(tensor.raw(), outputs[i].data, outputs[i].bytes());
      draft->constants[node.first_output + i] = std::move(tensor);
    }
    node.removed = true;
  }
  return absl::OkStatus();
}

}  // namespace mu
