// Runs one op's kernel on given tensors, outside of any graph.
#pragma once

#include <cstring>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/status.h"
#include "common/exec/kernel_table.h"
#include "common/graph/op_table.h"
#include "tests/testing/graph_maker.h"

namespace mu::testing {

// `hide` says for each input which sizes the kernel does not learn when it is made; none: it knows
// all. `kept`: what the kernel keeps between steps; null: this is its first.
inline absl::StatusOr<std::vector<Tensor>> RunOp(const std::string& op,
                                                 const std::vector<Tensor>& inputs,
                                                 const GraphMaker::Attrs& attrs = {},
                                                 const std::vector<Shape>& static_shapes = {},
                                                 Scratch* kept = nullptr) {
  muster::NodeProto node;
  node.set_op(op);
  for (const auto& [name, value] : attrs) (*node.mutable_attrs())[name] = value;
  MU_ASSIGN_OR_RETURN(const OpDef* def, AllOps().Get(op));
  NodeSpec spec{node, def->Read(node.attrs()), {}, {}};
  std::vector<View> views;
  for (size_t i = 0; i < inputs.size(); ++i) {
    spec.inputs.push_back(
        {inputs[i].dtype(), static_shapes.empty() ? inputs[i].shape() : static_shapes[i]});
    views.push_back({inputs[i].dtype(), inputs[i].shape(), const_cast<void*>(inputs[i].raw())});
  }
  MU_ASSIGN_OR_RETURN(spec.outputs, def->Infer(spec.inputs, node.attrs()));
  const KernelFactory factory = AllKernels().Find(op);
  if (factory == nullptr) return NoKernel(spec);
  MU_ASSIGN_OR_RETURN(const KernelPtr kernel, factory(spec));

  std::vector<const View*> pointers;
  for (const View& view : views) pointers.push_back(&view);
  const size_t count = spec.outputs.size();
  std::vector<View> outputs(count);
  std::vector<AlignedBuffer> buffers(count);
  std::vector<OutputPlace> places(count);
  for (size_t i = 0; i < count; ++i) {
    outputs[i].dtype = spec.outputs[i].dtype;
    places[i].buffer = &buffers[i];
    std::memset(buffers[i].Reserve(1 << 16), 0xAB,
                1 << 16);  // memory is not zero when a step is not the first
  }
  Scratch scratch;
  KernelContext context(pointers, absl::MakeSpan(outputs), absl::MakeSpan(places),
                        kept != nullptr ? kept : &scratch);
  MU_RETURN_IF_ERROR(kernel->Run(context));
  std::vector<Tensor> results;
  for (const View& view : outputs) {
    results.emplace_back(view.dtype, view.shape);
    if (view.bytes() > 0) std::memcpy(results.back().raw(), view.data, view.bytes());
  }
  return results;
}

}  // namespace mu::testing
