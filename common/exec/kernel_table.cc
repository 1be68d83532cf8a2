#include "common/exec/kernel_table.h"

namespace mu {

void KernelTable::Add(absl::string_view op, KernelFactory factory) {
  const bool added = factories_.emplace(std::string(op), factory).second;
  MU_CHECK(added);
}

KernelFactory KernelTable::Find(absl::string_view op) const {
  const auto found = factories_.find(op);
  return found == factories_.end() ? nullptr : found->second;
}

const KernelTable& AllKernels() {
  static const KernelTable* const table = [] {
    auto* made = new KernelTable;
    RegisterBinaryKernels(*made);
    RegisterComparisonKernels(*made);
    RegisterIntegerKernels(*made);
    RegisterUnaryKernels(*made);
    RegisterMathKernels(*made);
    RegisterMatmulKernels(*made);
    RegisterBatchMatmulKernels(*made);
    RegisterSoftmaxKernels(*made);
    RegisterCrossEntropyKernels(*made);
    RegisterNormKernels(*made);
    RegisterInteractionKernels(*made);
    RegisterConvKernels(*made);
    RegisterPoolKernels(*made);
    RegisterReduceKernels(*made);
    RegisterFoldKernels(*made);
    RegisterScanKernels(*made);
    RegisterLayoutKernels(*made);
    RegisterCopyKernels(*made);
    RegisterGatherKernels(*made);
    RegisterTileKernels(*made);
    RegisterSequenceKernels(*made);
    RegisterRandomKernels(*made);
    RegisterUniqueKernel(*made);
    RegisterSegmentKernels(*made);
    return made;
  }();
  return *table;
}

}  // namespace mu
