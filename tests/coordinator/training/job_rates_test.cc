#include "coordinator/training/job_rates.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "tests/testing/matchers.h"

namespace mu {
namespace {

TEST(JobRatesTest, WarmUpIsATenthOfTheJobAtMost) {
  muster::TrainingProto training;
  const auto warmup = [&](uint64_t steps) {
    const auto rates = JobRates(training, UpdatesOf(training, steps));
    EXPECT_THAT(rates, testing::IsOk());
    return rates.ok() ? rates->warmup_steps : 0;
  };
  EXPECT_EQ(warmup(100), 10u);
  EXPECT_EQ(warmup(1'000'000), 200u);
  training.set_warmup_steps("auto");
  training.set_epochs(3);
  EXPECT_EQ(warmup(100), 30u);
  training.set_max_steps(50);
  EXPECT_EQ(warmup(100), 5u);
  training.set_warmup_steps("77");
  EXPECT_EQ(warmup(100), 77u);
  training.set_warmup_steps("some");
  EXPECT_THAT(JobRates(training, 1), testing::HasCode(absl::StatusCode::kInvalidArgument));
}

TEST(JobRatesTest, ASchedulesEndIsTheJobs) {
  muster::TrainingProto training;
  training.set_epochs(2);
  training.set_warmup_steps("50");
  MU_ASSERT_OK_AND_ASSIGN(MinimizeOptions rates, JobRates(training, UpdatesOf(training, 500)));
  EXPECT_EQ(rates.schedule.proto().kind_case(), muster::ScheduleProto::KIND_NOT_SET);
  training.mutable_schedule()->mutable_cosine();
  MU_ASSERT_OK_AND_ASSIGN(rates, JobRates(training, UpdatesOf(training, 500)));
  EXPECT_EQ(rates.schedule.proto().cosine().steps(), 950u);
  training.mutable_schedule()->mutable_step()->set_every(3);
  MU_ASSERT_OK_AND_ASSIGN(rates, JobRates(training, UpdatesOf(training, 500)));
  EXPECT_EQ(rates.schedule.proto().step().every(), 3u);
}

TEST(JobRatesTest, ARoundIsOneUpdate) {
  muster::TrainingProto training;
  training.mutable_sync()->set_replicas(4);
  EXPECT_FALSE(RoundsOf(training).on()) << "of another mode";
  training.set_mode("sync");
  training.mutable_sync()->set_backup_workers(1);
  training.mutable_sync()->set_rows("sum");
  EXPECT_EQ(RoundsOf(training), (RoundRules{.replicas = 4, .backups = 1, .sum_rows = true}));
  training.set_warmup_steps("5");
  training.mutable_schedule()->mutable_cosine();
  EXPECT_EQ(UpdatesOf(training, 101), 26u) << "those after a lease complete its last round";
  MU_ASSERT_OK_AND_ASSIGN(const MinimizeOptions rates, JobRates(training, 26));
  EXPECT_EQ(rates.schedule.proto().cosine().steps(), 21u) << "26 rounds, of which 5 warm up";
}

// 80,000 records in batches of 512, by leases of 16,384 records: rounds of 24 end with each lease.
TEST(JobRatesTest, RoundsWithoutBackupsEndWithEachLease) {
  muster::TrainingProto training;
  training.set_mode("sync");
  training.mutable_sync()->set_replicas(24);
  training.set_epochs(4);
  std::vector<uint64_t> asked;
  const auto rounds = [&] {
    asked.clear();
    const absl::StatusOr<uint64_t> found =
        RoundsOfLeases(training, [&](uint64_t epoch) -> absl::StatusOr<std::vector<uint32_t>> {
          asked.push_back(epoch);
          return std::vector<uint32_t>{32, 32, 32, 32, 29};
        });
    MU_EXPECT_OK(found.status());
    return found.value_or(0);
  };
  EXPECT_EQ(rounds(), 40u);
  EXPECT_THAT(asked, ::testing::ElementsAre(0, 1, 2, 3));
  training.set_max_steps(157 + 25);
  EXPECT_EQ(rounds(), 10u + 2u);
  EXPECT_THAT(asked, ::testing::ElementsAre(0, 1)) << "it ends there";
  training.set_max_steps(24);
  EXPECT_EQ(rounds(), 1u);
  training.clear_max_steps();
  training.set_epochs(4'000'000'000u);
  EXPECT_EQ(rounds(), 40'000'000'000u);
  EXPECT_EQ(asked.size(), 16u) << "the others are like these";
  training.set_max_steps(157 * 1000 + 1);
  EXPECT_EQ(rounds(), 10'001u);
  training.clear_max_steps();
  training.set_epochs(4);
  training.mutable_sync()->set_replicas(1);
  EXPECT_EQ(rounds(), 4u * 157u);
  EXPECT_THAT(RoundsOfLeases(training,
                             [](uint64_t) -> absl::StatusOr<std::vector<uint32_t>> {
                               return absl::CancelledError("stopped");
                             }),
              testing::HasCode(absl::StatusCode::kCancelled));
}

TEST(JobRatesTest, TheBoundOnStalenessIsThatOfItsMode) {
  muster::TrainingProto training;
  EXPECT_EQ(BoundedStalenessOf(training), std::nullopt);
  training.mutable_bounded_staleness()->set_steps(0);
  EXPECT_EQ(BoundedStalenessOf(training), std::nullopt);
  training.set_mode("bounded_staleness");
  EXPECT_EQ(BoundedStalenessOf(training), 0u);
  training.mutable_bounded_staleness()->set_steps(7);
  EXPECT_EQ(BoundedStalenessOf(training), 7u);
}

TEST(JobRatesTest, LateGradientsAreTreatedAsTheJobSays) {
  muster::TrainingProto training;
  MU_ASSERT_OK_AND_ASSIGN(MinimizeOptions rates, JobRates(training, UpdatesOf(training, 500)));
  EXPECT_FALSE(rates.staleness.has_value());
  muster::StalenessOptionsProto* const staleness = training.mutable_staleness();
  MU_ASSERT_OK_AND_ASSIGN(rates, JobRates(training, UpdatesOf(training, 500)));
  ASSERT_TRUE(rates.staleness.has_value()) << "they are counted";
  EXPECT_EQ(rates.staleness->discount, StalenessDiscount::kNone);
  EXPECT_EQ(rates.staleness->max, std::nullopt);
  staleness->set_max(0);
  for (const auto& [name, discount] : {std::pair("none", StalenessDiscount::kNone),
                                       std::pair("inverse", StalenessDiscount::kInverse),
                                       std::pair("exponential", StalenessDiscount::kExponential)}) {
    staleness->set_discount(name);
    MU_ASSERT_OK_AND_ASSIGN(rates, JobRates(training, UpdatesOf(training, 500)));
    EXPECT_EQ(rates.staleness->discount, discount) << name;
    EXPECT_EQ(rates.staleness->max, 0u);
  }
  staleness->set_discount("some");
  EXPECT_THAT(JobRates(training, 1), testing::HasCode(absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace mu
