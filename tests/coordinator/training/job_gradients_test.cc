#include "coordinator/training/job_gradients.h"

#include <gtest/gtest.h>

#include "common/base/status.h"

namespace mu {
namespace {

TEST(JobGradients, EachKeyIsItsOption) {
  pb::TrainingProto training;
  EXPECT_FALSE(GradientOptionsOf(training).any());
  training.set_l1(1);
  training.set_l2(2);
  training.set_clip_by_value(3);
  training.set_clip_by_norm(4);
  training.set_clip_by_global_norm(5);
  training.set_weight_decay(6);
  const GradientOptions options = GradientOptionsOf(training);
  EXPECT_EQ(options.l1, 1);
  EXPECT_EQ(options.l2, 2);
  EXPECT_EQ(options.clip_by_value, 3);
  EXPECT_EQ(options.clip_by_norm, 4);
  EXPECT_EQ(options.clip_by_global_norm, 5);
  EXPECT_EQ(options.weight_decay, 6);
}

TEST(JobGradients, WithoutMicroBatchesABatchIsComputedWhole) {
  pb::TrainingProto training;
  EXPECT_EQ(MicroBatchesOf(training), 1u);
  training.set_micro_batches(4);
  EXPECT_EQ(MicroBatchesOf(training), 4u);
}

}  // namespace
}  // namespace mu
