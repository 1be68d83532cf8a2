// The parts of the table, one function per subject. Called by AllOps(), once.
#pragma once

#include "common/graph/op_table.h"

namespace mu {

void RegisterSourceOps(OpTable& table);       // source_ops.cc
void RegisterElementwiseOps(OpTable& table);  // elementwise_ops.cc
void RegisterMathOps(OpTable& table);         // math_ops.cc: products and sums
void RegisterArrayOps(OpTable& table);        // array_ops.cc: moving data
void RegisterGradientOps(OpTable& table);     // gradient_ops.cc: what gradients are made of
void RegisterParameterOps(OpTable& table);    // parameter_ops.cc

}  // namespace mu
