// The parts of the table, one function per subject. Called by AllOps(), once.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "common/graph/op_table.h"

namespace mu {

// An op with one output, which other parts of OpDef may change.
inline OpDef MakeOp(std::string name, int min_inputs, int max_inputs, InferFunction infer,
                    std::vector<AttrDef> attrs = {}) {
  OpDef def;
  def.name = std::move(name);
  def.min_inputs = min_inputs;
  def.max_inputs = max_inputs;
  def.attrs = std::move(attrs);
  def.infer = std::move(infer);
  return def;
}

void RegisterSourceOps(OpTable& table);       // source_ops.cc
void RegisterElementwiseOps(OpTable& table);  // elementwise_ops.cc
void RegisterMathOps(OpTable& table);         // math_ops.cc: products and sums
void RegisterArrayOps(OpTable& table);        // array_ops.cc: moving data
void RegisterRandomOps(OpTable& table);       // random_ops.cc
void RegisterGradientOps(OpTable& table);     // gradient_ops.cc: what gradients are made of
void RegisterParameterOps(OpTable& table);    // parameter_ops.cc

}  // namespace mu
