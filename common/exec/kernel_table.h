// The table of kernels by op name. Filled explicitly, family by family; immutable afterwards, safe
// from all threads.
#pragma once

#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "common/exec/kernel.h"

namespace mu {

class KernelTable {
 public:
  void Add(absl::string_view op, KernelFactory factory);
  // Null if the op has no kernel.
  KernelFactory Find(absl::string_view op) const;

 private:
  absl::flat_hash_map<std::string, KernelFactory> factories_;
};

// One per file of kernels.
void RegisterBinaryKernels(KernelTable& table);
void RegisterComparisonKernels(KernelTable& table);
void RegisterIntegerKernels(KernelTable& table);
void RegisterUnaryKernels(KernelTable& table);
void RegisterMathKernels(KernelTable& table);
void RegisterMatmulKernels(KernelTable& table);
void RegisterBatchMatmulKernels(KernelTable& table);
void RegisterSoftmaxKernels(KernelTable& table);
void RegisterCrossEntropyKernels(KernelTable& table);
void RegisterNormKernels(KernelTable& table);
void RegisterInteractionKernels(KernelTable& table);
void RegisterConvKernels(KernelTable& table);
void RegisterPoolKernels(KernelTable& table);
void RegisterReduceKernels(KernelTable& table);
void RegisterFoldKernels(KernelTable& table);
void RegisterScanKernels(KernelTable& table);
void RegisterLayoutKernels(KernelTable& table);
void RegisterCopyKernels(KernelTable& table);
void RegisterGatherKernels(KernelTable& table);
void RegisterTileKernels(KernelTable& table);
void RegisterSequenceKernels(KernelTable& table);
void RegisterRandomKernels(KernelTable& table);
void RegisterUniqueKernel(KernelTable& table);
void RegisterSegmentKernels(KernelTable& table);

// Every kernel there is. Sources (constant, arg, worker_index, batch_column, variable_read),
// pull_rows and the updates have none: the executor does what they say.
const KernelTable& AllKernels();

}  // namespace mu
