// Layouts of data files as workers report them, and the plan of an epoch that the coordinator makes
// of those that it accepts.
#include <memory>
#include <vector>

#include "common/base/check.h"
#include "coordinator/cluster/file_layout_check.h"
#include "coordinator/core/data_contents.h"
#include "coordinator/core/data_plan.h"
#include "tests/fuzz/structured.h"

MUSTER_FUZZ_MESSAGE(muster::fuzz::LayoutInput) {
  muster::DatasetProto dataset = input.dataset();
  // As the coordinator gives them to a data set, and as the job file's validation bounds them.
  if (dataset.batch_size() == 0) dataset.set_batch_size(1);
  if (dataset.records().modulo() > 1 << 12 || dataset.records().keep_size() > 1 << 12) return;
  if (dataset.block_records() == 0) dataset.set_block_records(mu::DefaultBlockRecords(dataset));
  auto files = std::make_shared<std::vector<mu::FileLayout>>();
  for (const muster::FileLayoutProto& file : input.files()) {
    if (mu::CheckFileLayout(dataset, file).ok()) files->emplace_back(file);
  }
  const mu::DataLayout layout{dataset, files};
  (void)layout.Fingerprint();
  MU_CHECK(mu::ContentsOf(layout).size() <= mu::kMostContents);
  const auto plan = mu::EpochPlan::Make(layout, input.epoch());
  MU_CHECK(mu::EpochPlan::CountBatches(layout, input.epoch()) == (plan.ok() ? plan->batches() : 0));
}
