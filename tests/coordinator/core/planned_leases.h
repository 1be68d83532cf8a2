// Data without files, and leases whose plans come as soon as they are asked for.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "common/base/check.h"
#include "coordinator/core/dataset_leases.h"

namespace mu::testing {

inline DataLayout LayoutOf(pb::DatasetProto dataset, std::vector<FileLayout> files) {
  return {std::move(dataset), std::make_shared<const std::vector<FileLayout>>(std::move(files))};
}

inline DataLeases::Plan PlanOf(const DataLayout& data, uint64_t epoch) {
  auto plan = EpochPlan::Make(data, epoch);
  MU_CHECK(plan.ok());
  return std::make_shared<const EpochPlan>(*std::move(plan));
}

inline DataLeases BeginLeases(const DataLayout& data, uint64_t epoch = 0) {
  return DataLeases(data, epoch, PlanOf(data, epoch));
}

inline std::vector<BatchRange> Take(DataLeases& leases, WorkerId worker, uint32_t steps) {
  while (const auto epoch = leases.AskForPlan(steps)) leases.Bring(PlanOf(leases.data(), *epoch));
  auto taken = leases.Take(worker, steps);
  EXPECT_TRUE(taken.has_value()) << "a plan is lacking that was not asked for";
  return taken.value_or(std::vector<BatchRange>());
}

inline std::vector<BatchRange> Take(DatasetLeases& leases, WorkerId worker, uint32_t steps) {
  while (const auto epoch = leases.AskForPlan(steps)) leases.Bring(PlanOf(leases.data(), *epoch));
  auto taken = leases.Take(worker, steps);
  EXPECT_TRUE(taken.has_value()) << "a plan is lacking that was not asked for";
  return taken.value_or(std::vector<BatchRange>());
}

}  // namespace mu::testing
