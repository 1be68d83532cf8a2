// Mistakes in what a job says of when gradients are applied, each with its place and remedy.
#include <gtest/gtest.h>

#include "tests/coordinator/cli/job_text.h"
#include "tests/testing/matchers.h"

namespace mu {
namespace {

using testing::GoodJob;
using testing::Mistake;
using testing::ProblemsOf;
using testing::With;

class JobConsistencyTest : public ::testing::TestWithParam<Mistake> {};

TEST_P(JobConsistencyTest, IsNamedWithPlaceAndRemedy) {
  EXPECT_EQ(ProblemsOf(With(GoodJob(), GetParam().from, GetParam().to)), GetParam().problems);
}

INSTANTIATE_TEST_SUITE_P(
    Modes, JobConsistencyTest,
    ::testing::Values(
        Mistake{"unknown_mode", "steps_per_function: auto", "mode: some",
                "job.yaml:16:46: `training.mode` must be async, bounded_staleness or sync, not "
                "`some`; leave it out for async\n"},
        Mistake{"unknown_discount", "steps_per_function: auto", "staleness: {discount: some}",
                "job.yaml:16:62: `training.staleness.discount` must be none, inverse or "
                "exponential, not `some`; inverse divides the learning rate by the lateness\n"},
        Mistake{"staleness_of_another_mode", "steps_per_function: auto",
                "mode: bounded_staleness, bounded_staleness: {steps: 8}, staleness: {max: 1}",
                "job.yaml:16:96: `training.staleness` belongs to mode async, and training.mode is "
                "bounded_staleness; remove one of them\n"},
        Mistake{"bound_of_another_mode", "steps_per_function: auto",
                "bounded_staleness: {steps: 8}",
                "job.yaml:16:40: `training.bounded_staleness` belongs to mode bounded_staleness, "
                "and training.mode is async; write mode: bounded_staleness, or remove it\n"},
        Mistake{"bound_without_steps", "steps_per_function: auto",
                "mode: bounded_staleness, bounded_staleness: {}",
                "job.yaml:16:65: the key `training.bounded_staleness.steps` is missing: it says no "
                "number of steps; some times the number of workers is usual\n"},
        Mistake{"bound_below_a_function", "steps_per_function: auto",
                "steps_per_function: 10, mode: bounded_staleness, bounded_staleness: {steps: 8}",
                "job.yaml:16:116: `training.bounded_staleness.steps` is 8, but a function has 10 "
                "steps (training.steps_per_function), so no two would run at once; write at least "
                "10 for each function that is to run at once, or leave steps_per_function out\n"},
        Mistake{"rounds_of_another_mode", "steps_per_function: auto", "sync: {replicas: 2}",
                "job.yaml:16:40: `training.sync` belongs to mode sync, and training.mode is async; "
                "write mode: sync, or remove it\n"},
        Mistake{"bound_with_rounds", "steps_per_function: auto",
                "mode: sync, sync: {replicas: 2}, bounded_staleness: {steps: 8}",
                "job.yaml:16:73: `training.bounded_staleness` belongs to mode bounded_staleness, "
                "and training.mode is sync; write mode: bounded_staleness, or remove it\n"},
        Mistake{"staleness_with_rounds", "steps_per_function: auto",
                "mode: sync, sync: {replicas: 2}, staleness: {max: 1}",
                "job.yaml:16:73: `training.staleness` belongs to mode async, and training.mode is "
                "sync; remove one of them\n"},
        Mistake{"rounds_of_no_size", "steps_per_function: auto", "mode: sync, sync: {}",
                "job.yaml:16:52: the key `training.sync.replicas` is missing: it says no number of "
                "steps that a round takes; the number of workers, less backup_workers, is usual\n"},
        Mistake{"empty_rounds", "steps_per_function: auto", "mode: sync, sync: {replicas: 0}",
                "job.yaml:16:69: `training.sync.replicas` must be 1 to 100000, not 0; the number "
                "of workers, less backup_workers, is usual\n"},
        Mistake{"unknown_rows", "steps_per_function: auto",
                "mode: sync, sync: {replicas: 2, rows: max}",
                "job.yaml:16:78: `training.sync.rows` must be mean or sum, not `max`; leave it out "
                "for mean\n"},
        Mistake{"packed_rounds", "steps_per_function: auto",
                "steps_per_function: 10, mode: sync, sync: {replicas: 2}",
                "job.yaml:16:60: `training.steps_per_function` is 10, and with training.mode: sync "
                "a function has one step; leave it out\n"},
        Mistake{"gap_of_rounds", "steps_per_function: auto",
                "mode: sync, sync: {replicas: 2}, max_gap: 0.1",
                "job.yaml:16:82: `training.max_gap` packs steps, and with training.mode: sync a "
                "function has one step; remove it\n"},
        Mistake{"rounds_of_single_servers", "steps_per_function: auto}",
                "mode: sync, sync: {replicas: 2}}\nrecovery: shard",
                "job.yaml:17:11: `recovery` is shard, and with training.mode: sync a server that "
                "goes back alone would lack rounds that the others have; write recovery: all, or "
                "leave it out\n"}),
    [](const auto& row) { return row.param.name; });

TEST(JobConsistency, RoundsNeedRecordsThatHaveAPlace) {
  const std::string job = With(GoodJob(), "shuffle:", "visitation: none\n    shuffle:");
  EXPECT_EQ(ProblemsOf(job), "");
  EXPECT_EQ(ProblemsOf(With(job, "steps_per_function: auto", "mode: sync, sync: {replicas: 2}")),
            "job.yaml:7:17: `data.train.visitation` is none, and with training.mode: sync a step's "
            "records need a place in the data; leave it out\n");
}

}  // namespace
}  // namespace mu
