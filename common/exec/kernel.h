// What a kernel is: the code that computes one node of a graph, made once per compile, run once per
// step.
//
// A kernel is immutable after it was made (several executors share it); what it needs between steps
// is in the executor's Scratch. Kernels trust types (the verifier checked them at compile time) but
// not sizes nor values: shapes with unknown axes, indices and splits are checked at run time,
// INVALID_ARGUMENT or OUT_OF_RANGE says what is wrong. The executor adds the op and its file:line
// to such errors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/base/status.h"
#include "common/exec/aligned_buffer.h"
#include "common/graph/op_def.h"
#include "common/tensor/dtype.h"
#include "common/tensor/shape.h"
#include "proto/graph.pb.h"

namespace mu {

// A tensor whose memory somebody else keeps.
struct View {
  DType dtype = pb::DTYPE_INVALID;
  Shape shape;
  void* data = nullptr;

  int64_t elements() const { return shape.elements(); }
  size_t bytes() const { return static_cast<size_t>(elements()) * ElementSize(dtype); }
  template <typename T>
  T* as() const {
    return static_cast<T*>(data);
  }
};

// "a tensor of shape ... does not fit into memory": RESOURCE_EXHAUSTED.
absl::Status NoMemory(const Shape& shape);

// Memory for a tensor; null if there is not that much.
void* ReserveFor(const Shape& shape, DType dtype, AlignedBuffer& buffer);

// What a kernel has prepared for the sizes of the last step.
struct ScratchState {
  virtual ~ScratchState() = default;
};

// What a kernel keeps between steps, one per executor and node: buffers and counters of its own,
// zero at first.
struct Scratch {
  AlignedBuffer buffers[2];
  uint64_t counters[2] = {0, 0};
  std::unique_ptr<ScratchState> state;
};

// Where the outputs of a node go; the plan decides it once.
struct OutputPlace {
  AlignedBuffer* buffer = nullptr;  // shared with values that live at other times
  AlignedBuffer* spare = nullptr;   // used when an output cannot be written in place after all
  // The input whose memory is taken over if its shape is that of the output.
  int in_place_input = -1;
};

// The view of one node at run time.
class KernelContext {
 public:
  KernelContext(absl::Span<const View* const> inputs, absl::Span<View> outputs,
                absl::Span<OutputPlace> places, Scratch* scratch, uint64_t step = 0)
      : inputs_(inputs), outputs_(outputs), places_(places), scratch_(scratch), step_(step) {}

  int num_inputs() const { return static_cast<int>(inputs_.size()); }
  const View& input(int i) const { return *inputs_[i]; }
  template <typename T>
  const T* in(int i) const {
    return static_cast<const T*>(inputs_[i]->data);
  }
  // Gives output `i` its shape and 64-byte aligned memory with 64 readable bytes past its end.
  // Where the plan allows it the memory is that of an input, so a kernel that MayOverwrite an input
  // reads an element before it writes it.
  // RESOURCE_EXHAUSTED if there is no memory for it.
  template <typename T>
  absl::StatusOr<T*> Output(int i, const Shape& shape) {
    void* const memory = Allocate(i, shape);
    if (memory == nullptr) return NoMemory(shape);
    return static_cast<T*>(memory);
  }
  // Output `i` is the memory of `input` under another shape.
  void Alias(int i, int input, const Shape& shape);
  Scratch& scratch() { return *scratch_; }
  // What random ops draw by: the step's number in the job, with the slice of its batch mixed in
  // (random.h). The same whenever and wherever the step is run.
  uint64_t step() const { return step_; }

 private:
  void* Allocate(int i, const Shape& shape);

  const absl::Span<const View* const> inputs_;
  const absl::Span<View> outputs_;
  const absl::Span<OutputPlace> places_;
  Scratch* const scratch_;
  const uint64_t step_;
};

class Kernel {
 public:
  virtual ~Kernel() = default;
  virtual absl::Status Run(KernelContext& context) const = 0;
  // Whether output 0 may be written over input `i` of the same shape and element size.
  virtual bool MayOverwrite(int) const { return false; }
  // Whether output 0 may be the memory of input 0, perhaps under another shape (Run calls Alias).
  virtual bool MayAlias() const { return false; }
  // Whether the elements of input `i` are read; otherwise only its shape is, and its memory may be
  // reused before.
  virtual bool ReadsElements(int) const { return true; }
};

// What is known of a node at compile time. Shapes have -1 for sizes known only at run time.
struct NodeSpec {
  const pb::NodeProto& node;
  AttrReader attrs;
  std::vector<TensorSpec> inputs;
  std::vector<TensorSpec> outputs;
};

using KernelPtr = std::unique_ptr<const Kernel>;
using KernelFactory = absl::StatusOr<KernelPtr> (*)(const NodeSpec&);

// "no kernel for ... with element type ...".
absl::Status NoKernel(const NodeSpec& spec);

// Calls `f(T())` with the C++ type of `dtype`; false if it is no element type. How kernels choose
// their types: common/exec/dispatch.h.
template <typename F>
bool WithType(DType dtype, F&& f) {
  switch (dtype) {
    case kFloat32:
      f(float());
      return true;
    case kInt32:
      f(int32_t());
      return true;
    case kInt64:
      f(int64_t());
      return true;
    case kUInt8:
      f(uint8_t());
      return true;
    case kBool:
      f(bool());
      return true;
    default:
      return false;
  }
}

}  // namespace mu
