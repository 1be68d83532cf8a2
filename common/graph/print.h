// Graphs as text, for people: never parsed. Works on graphs that do not verify, then without types.
#pragma once

#include <string>

#include "proto/graph.pb.h"

namespace mu {

// One line per node: %3 = matmul(%1, %2) {transpose_b=true} : float32[?, 16]  # model.cc:31
std::string FunctionToText(const muster::FunctionProto& function);

// For Graphviz: parameters, data and effects are coloured, edges carry types.
std::string FunctionToDot(const muster::FunctionProto& function);

// As in the text: true, 3, [1, 2], float32[2]{1, 2}.
std::string AttrToText(const muster::AttrValue& value);

}  // namespace mu
