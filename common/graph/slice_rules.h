// Which part of a step computes what, where its batch is computed in slices
// (FunctionProto.micro_batches), and what such a function must keep to.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "proto/graph.pb.h"

namespace mu {

// As many slices as a batch may have records.
inline constexpr uint32_t kMaxMicroBatches = 1 << 20;

enum class StepPart {
  kAny,     // the same in all slices: of variables, arguments and constants only
  kSlice,   // of a slice's records, of rows that it pulls, or drawn for it
  kFinish,  // after the last slice: of what was accumulated
};

// By node of a function that passed InferSpecs.
std::vector<StepPart> StepPartsOf(const muster::FunctionProto& function);

// Of a lowered function that passed InferSpecs: only one with micro batches accumulates; nothing
// depends on a slice and on what is accumulated; returns and updates depend on no slice.
// INVALID_ARGUMENT, with op and file:line.
absl::Status CheckSlices(const muster::FunctionProto& function);

}  // namespace mu
