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

void RegisterSourceOps(OpTable& table);        // source_ops.cc
void RegisterElementwiseOps(OpTable& table);   // elementwise_ops.cc
void RegisterComparisonOps(OpTable& table);    // comparison_ops.cc: with logic and where
void RegisterIntegerOps(OpTable& table);       // integer_ops.cc: arithmetic of ids
void RegisterMathOps(OpTable& table);          // math_ops.cc: products and sums
void RegisterReductionOps(OpTable& table);     // reduction_ops.cc: other reductions, scans
void RegisterArrayOps(OpTable& table);         // array_ops.cc: moving data
void RegisterLayoutOps(OpTable& table);        // layout_ops.cc: axes, repetition, margins
void RegisterSequenceOps(OpTable& table);      // sequence_ops.cc
void RegisterNeuralOps(OpTable& table);        // neural_ops.cc
void RegisterImageOps(OpTable& table);         // image_ops.cc: convolution and pooling
void RegisterRandomOps(OpTable& table);        // random_ops.cc
void RegisterGradientOps(OpTable& table);      // gradient_ops.cc: what gradients are made of
void RegisterParameterOps(OpTable& table);     // parameter_ops.cc
void RegisterAccumulationOps(OpTable& table);  // accumulation_ops.cc: over the slices of a batch

}  // namespace mu
