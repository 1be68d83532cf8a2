#include "coordinator/core/own_leases.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "common/base/hash.h"
#include "coordinator/core/permutation.h"
#include "tests/coordinator/core/planned_leases.h"
#include "tests/testing/matchers.h"

namespace mu {
namespace {

TEST(Permutation, IsOne) {
  for (const uint64_t n : {1u, 2u, 3u, 4u, 5u, 16u, 17u, 1000u}) {
    const Permutation order(n, 7 * n);
    std::set<uint64_t> images;
    for (uint64_t i = 0; i < n; ++i) images.insert(order(i));
    EXPECT_EQ(images.size(), n);
    EXPECT_EQ(*images.rbegin(), n - 1);
  }
}

TEST(Permutation, OfEachSeedIsAnother) {
  constexpr uint64_t kSize = 1000;
  const Permutation one(kSize, 1), two(kSize, 2);
  int same = 0, in_place = 0;
  for (uint64_t i = 0; i < kSize; ++i) {
    same += one(i) == two(i) ? 1 : 0;
    in_place += one(i) == i ? 1 : 0;
  }
  EXPECT_LT(same, 10);
  EXPECT_LT(in_place, 10);
}

pb::DatasetProto Dataset(SplitMix& random) {
  pb::DatasetProto dataset;
  dataset.set_id(3);
  dataset.set_batch_size(1 + static_cast<uint32_t>(random.Below(7)));
  dataset.set_block_records(1 + static_cast<uint32_t>(random.Below(20)));
  dataset.set_shuffle_records(random.Below(2) * (1 + random.Below(60)));
  dataset.set_epochs(2);
  if (random.Below(2) == 0) {
    dataset.mutable_records()->set_modulo(5);
    dataset.mutable_records()->add_keep(static_cast<uint32_t>(random.Below(5)));
  }
  return dataset;
}

// Each block with selected records comes once an epoch, in leases whose batches hold their records.
TEST(OwnLeases, GoThroughAllRecordsOnceAnEpoch) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    SplitMix random(seed);
    const pb::DatasetProto dataset = Dataset(random);
    std::vector<FileLayout> files;
    for (uint64_t f = 1 + random.Below(4); f > 0; --f) files.emplace_back(1 + random.Below(100));
    const DataLayout data = testing::LayoutOf(dataset, files);
    const auto blocks = std::make_shared<const BlockIndex>(data);
    OwnLeases leases(blocks, seed, {});
    std::map<std::tuple<uint64_t, uint32_t, uint64_t>, int> seen;  // epoch, file, first
    std::map<uint64_t, uint64_t> records;                          // by epoch
    std::shared_ptr<const pb::LeaseProto> last;
    while (true) {
      const auto taken = leases.Take(1 + static_cast<uint32_t>(random.Below(5)));
      if (taken.empty()) break;
      for (const BatchRange& range : taken) {
        if (range.lease == last) continue;
        last = range.lease;
        EXPECT_EQ(range.first_batch, 0u);
        for (const pb::BlockProto& block : range.lease->blocks()) {
          EXPECT_EQ((++seen[{range.lease->epoch(), block.file(), block.first()}]), 1);
          records[range.lease->epoch()] +=
              SelectedRecords(dataset.records(), block.first(), block.count());
        }
      }
      if (random.Below(4) == 0) (void)leases.Upcoming();
    }
    uint64_t all = 0;
    for (const FileLayout& file : files) all += SelectedRecords(dataset.records(), 0, file.records);
    if (all == 0) continue;
    ASSERT_EQ(records.size(), 2u) << "seed " << seed;
    for (const auto& [epoch, of_epoch] : records) ASSERT_EQ(of_epoch, all) << "seed " << seed;
    EXPECT_TRUE(leases.Take(1).empty()) << "that was all";
    EXPECT_EQ(leases.Upcoming(), nullptr);
  }
}

// As the plans of shared data: a lease of less than a batch would make all batches small.
TEST(OwnLeases, BatchesAreNoSmallerThanAskedFor) {
  pb::DatasetProto dataset;
  dataset.set_id(3);
  dataset.set_epochs(1);
  const auto steps = [&](uint32_t batch, uint64_t shuffle, uint32_t block,
                         const std::vector<FileLayout>& files) {
    dataset.set_batch_size(batch);
    dataset.set_shuffle_records(shuffle);
    dataset.set_block_records(block);
    OwnLeases leases(std::make_shared<const BlockIndex>(testing::LayoutOf(dataset, files)), 1, {});
    uint32_t taken = 0;
    for (const BatchRange& range : leases.Take(1'000'000)) taken += range.batches;
    return taken;
  };
  const std::vector<FileLayout> small(10, FileLayout(300));
  EXPECT_EQ(steps(512, 256, 512, small), 6u);
  EXPECT_EQ(steps(5000, 256, 5000, small), 1u) << "all of it is less than a batch";
  EXPECT_EQ(steps(65'536, 0, 4096, {4 * 65'536}), 4u);
  EXPECT_EQ(steps(10, 100, 50, {1000}), 100u);
}

TEST(OwnLeases, WhatIsUpcomingIsWhatComes) {
  SplitMix random(3);
  pb::DatasetProto dataset = Dataset(random);
  dataset.clear_records();
  dataset.set_shuffle_records(40);
  dataset.set_epochs(0);
  const auto blocks =
      std::make_shared<const BlockIndex>(testing::LayoutOf(dataset, {FileLayout(500)}));
  OwnLeases leases(blocks, 9, {});
  std::shared_ptr<const pb::LeaseProto> upcoming = leases.Upcoming();
  ASSERT_NE(upcoming, nullptr) << "the first one";
  std::shared_ptr<const pb::LeaseProto> current;
  int announced = 0;
  for (int i = 0; i < 500; ++i) {
    const auto taken = leases.Take(1);
    ASSERT_EQ(taken.size(), 1u);
    if (taken[0].lease != current) {
      if (upcoming != nullptr) {
        EXPECT_EQ(taken[0].lease, upcoming);
        ++announced;
      }
      current = taken[0].lease;
      upcoming = nullptr;
    }
    if (const auto next = leases.Upcoming()) upcoming = next;
  }
  EXPECT_GT(announced, 10);
}

TEST(OwnLeases, ContinueAtTheirPlace) {
  SplitMix random(4);
  pb::DatasetProto dataset = Dataset(random);
  dataset.set_epochs(0);
  const auto blocks =
      std::make_shared<const BlockIndex>(testing::LayoutOf(dataset, {FileLayout(300)}));
  OwnLeases whole(blocks, 9, {});
  for (int i = 0; i < 100; ++i) {
    OwnLeases continued(blocks, 9, whole.place());
    const auto expected = whole.Take(3), taken = continued.Take(3);
    ASSERT_EQ(taken.size(), expected.size());
    for (size_t k = 0; k < taken.size(); ++k) {
      EXPECT_EQ(taken[k].lease->SerializeAsString(), expected[k].lease->SerializeAsString());
      EXPECT_EQ(taken[k].first_batch, expected[k].first_batch);
      EXPECT_EQ(taken[k].batches, expected[k].batches);
    }
  }
}

}  // namespace
}  // namespace mu
