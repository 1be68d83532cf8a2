#include "worker/data/lease_cache.h"

#include <atomic>
#include <thread>

#include "tests/worker/data/data_test_util.h"

namespace mu {
namespace {

using ::mu::testing::HasCode;

constexpr uint32_t kRecords = 1000;

class LeaseCacheTest : public DataTest {
 protected:
  void SetUp() override {
    DataTest::SetUp();
    dataset_.set_batch_size(100);
    dataset_.set_block_records(10);
    AddColumn(&dataset_, "id", pb::CsvColumnProto::ID, 0);
    std::string text;
    for (uint32_t i = 0; i < kRecords; ++i) absl::StrAppend(&text, i, "\n");
    dataset_.add_files(Write("f.csv", text));
    reader_ = Reader(dataset_);
    MU_ASSERT_OK(reader_->Layout(0).status());
    one_ = (*reader_->Read(Lease(0)))->bytes();
  }
  // Ten records from 10 * index.
  static pb::LeaseProto Lease(uint32_t index) {
    pb::LeaseProto lease = LeaseOf({Block(0, index * 10, 10)}, 7);
    lease.set_index(index);
    return lease;
  }
  // Until the file is put back by Restore(), reads fail: what is still served was held.
  void Hide() { MU_ASSERT_OK(RenameFile(dataset_.files(0), Path("hidden"))); }
  void Restore() { MU_ASSERT_OK(RenameFile(Path("hidden"), dataset_.files(0))); }
  static void WaitForBytes(const LeaseCache& cache, size_t bytes) {
    while (cache.bytes() < bytes) std::this_thread::yield();
  }

  pb::DatasetProto dataset_;
  std::shared_ptr<DatasetReader> reader_;
  size_t one_ = 0;  // bytes of one lease
};

TEST_F(LeaseCacheTest, ReadsWithoutThreads) {
  LeaseCache cache(0, 10 * one_);
  cache.Prefetch(reader_, Lease(1));
  MU_ASSERT_OK_AND_ASSIGN(const auto data, cache.Get(reader_, Lease(1)));
  EXPECT_EQ(data->records(), 10u);
  MU_ASSERT_OK_AND_ASSIGN(const auto again, cache.Get(reader_, Lease(1)));
  EXPECT_EQ(data, again);
  MU_ASSERT_OK_AND_ASSIGN(const auto other, cache.Get(reader_, Lease(2)));
  EXPECT_NE(data, other);
}

TEST_F(LeaseCacheTest, ServesWhatWasReadAhead) {
  LeaseCache cache(2, 10 * one_);
  for (uint32_t i = 0; i < 5; ++i) cache.Prefetch(reader_, Lease(i));
  WaitForBytes(cache, 5 * one_);
  Hide();
  for (uint32_t i = 0; i < 5; ++i) {
    MU_ASSERT_OK_AND_ASSIGN(const auto data, cache.Get(reader_, Lease(i)));
    const auto ids = Values<int64_t>(data->MakeBatch(0), "id");
    EXPECT_EQ(*std::min_element(ids.begin(), ids.end()), i * 10);
  }
}

TEST_F(LeaseCacheTest, ReadsAheadNoMoreThanFits) {
  LeaseCache cache(1, 3 * one_);
  for (uint32_t i = 0; i < 6; ++i) cache.Prefetch(reader_, Lease(i));
  WaitForBytes(cache, 3 * one_);
  for (uint32_t i = 0; i < 6; ++i) {
    MU_ASSERT_OK(cache.Get(reader_, Lease(i)).status());
    EXPECT_LE(cache.bytes(), 3 * one_);
  }
}

TEST_F(LeaseCacheTest, WhatIsReadAheadStaysUntilUsed) {
  LeaseCache cache(1, 3 * one_);
  cache.Prefetch(reader_, Lease(50));
  cache.Prefetch(reader_, Lease(51));
  WaitForBytes(cache, 2 * one_);
  for (uint32_t i = 0; i < 10; ++i) MU_ASSERT_OK(cache.Get(reader_, Lease(i)).status());
  EXPECT_LE(cache.bytes(), 3 * one_);
  Hide();
  MU_EXPECT_OK(cache.Get(reader_, Lease(50)).status());
  MU_EXPECT_OK(cache.Get(reader_, Lease(51)).status());
  MU_EXPECT_OK(cache.Get(reader_, Lease(9)).status());  // the last one used
  EXPECT_FALSE(cache.Get(reader_, Lease(8)).ok());
}

// A function that was taken back to run elsewhere leaves the lease that was read for it; there are
// such in every epoch, and the memory of a worker grew by each.
TEST_F(LeaseCacheTest, WhatFourLaterOnesHaveOvertakenIsForgotten) {
  LeaseCache cache(1, 1000 * one_);
  const auto another = Reader(dataset_);
  cache.Prefetch(another, Lease(0));
  for (uint32_t i = 0; i < 7; ++i) cache.Prefetch(reader_, Lease(i));
  WaitForBytes(cache, 8 * one_);
  cache.Prefetch(reader_, Lease(1));  // is still to come
  Hide();
  for (uint32_t i : {2, 3, 4}) MU_ASSERT_OK(cache.Get(reader_, Lease(i)).status());
  EXPECT_EQ(cache.bytes(), 8 * one_) << "functions may start in another order";
  MU_ASSERT_OK(cache.Get(reader_, Lease(5)).status());
  EXPECT_EQ(cache.bytes(), 7 * one_);
  EXPECT_FALSE(cache.Get(reader_, Lease(0)).ok());
  MU_EXPECT_OK(cache.Get(reader_, Lease(1)).status());
  MU_EXPECT_OK(cache.Get(reader_, Lease(6)).status());
  MU_EXPECT_OK(cache.Get(another, Lease(0)).status());
  Restore();
  MU_EXPECT_OK(cache.Get(reader_, Lease(0)).status());  // came after all
}

// Only what was asked for later counts: those here wait for their turn.
TEST_F(LeaseCacheTest, UsesThatWereNotReadAheadOvertakeNothing) {
  LeaseCache cache(1, 1000 * one_);
  for (uint32_t i = 0; i < 20; ++i) cache.Prefetch(reader_, Lease(i));
  WaitForBytes(cache, 20 * one_);
  for (uint32_t i = 20; i < 40; ++i) MU_ASSERT_OK(cache.Get(reader_, Lease(i)).status());
  Hide();
  for (uint32_t i = 0; i < 20; ++i) MU_EXPECT_OK(cache.Get(reader_, Lease(i)).status()) << i;
}

// Past epochs do not fill the memory, however much there is; the leases touched last stay.
TEST_F(LeaseCacheTest, FewOfTheUsedLeasesAreKept) {
  LeaseCache cache(0, 1000 * one_);
  for (uint32_t i = 0; i < 50; ++i) {
    MU_ASSERT_OK(cache.Get(reader_, Lease(i)).status());
    MU_ASSERT_OK(cache.Get(reader_, Lease(0)).status());  // goes on being used
  }
  EXPECT_EQ(cache.bytes(), 4 * one_);
  Hide();
  MU_EXPECT_OK(cache.Get(reader_, Lease(0)).status());
  MU_EXPECT_OK(cache.Get(reader_, Lease(49)).status());
  EXPECT_FALSE(cache.Get(reader_, Lease(10)).ok());
  Restore();
  // Another data set has its own.
  const auto other = Reader(dataset_);
  for (uint32_t i = 0; i < 10; ++i) MU_ASSERT_OK(cache.Get(other, Lease(i)).status());
  EXPECT_EQ(cache.bytes(), 8 * one_);
}

TEST_F(LeaseCacheTest, LeasesThatNobodyComesForDoNotBlockForEver) {
  LeaseCache cache(1, 2 * one_);
  cache.Prefetch(reader_, Lease(90));
  cache.Prefetch(reader_, Lease(91));
  WaitForBytes(cache, 2 * one_);
  // Reading ahead works again once the next ones had to be waited for. (A fourth would overtake.)
  for (uint32_t i = 0; i < 3; ++i) {
    cache.Prefetch(reader_, Lease(i));
    MU_ASSERT_OK(cache.Get(reader_, Lease(i)).status());
  }
  cache.Prefetch(reader_, Lease(10));
  std::shared_ptr<const LeaseData> data;
  WaitForBytes(cache, 2 * one_);
  Hide();
  EXPECT_FALSE(cache.Get(reader_, Lease(90)).ok());
}

TEST_F(LeaseCacheTest, ErrorsAreNotKept) {
  LeaseCache cache(1, 10 * one_);
  Hide();
  EXPECT_THAT(cache.Get(reader_, Lease(0)).status(), HasCode(absl::StatusCode::kNotFound));
  cache.Prefetch(reader_, Lease(1));
  Restore();
  MU_EXPECT_OK(cache.Get(reader_, Lease(0)).status());
}

TEST_F(LeaseCacheTest, ALeaseLargerThanTheCacheIsServedAndNotKept) {
  LeaseCache cache(0, one_ / 2);
  MU_ASSERT_OK_AND_ASSIGN(const auto data, cache.Get(reader_, Lease(0)));
  EXPECT_EQ(data->records(), 10u);
  EXPECT_EQ(cache.bytes(), 0u);
}

TEST_F(LeaseCacheTest, DropForgetsAReader) {
  LeaseCache cache(1, 10 * one_);
  const auto other = Reader(dataset_);
  MU_ASSERT_OK(cache.Get(reader_, Lease(0)).status());
  MU_ASSERT_OK(cache.Get(other, Lease(0)).status());
  EXPECT_EQ(cache.bytes(), 2 * one_);
  cache.Drop(other.get());
  EXPECT_EQ(cache.bytes(), one_);
}

TEST_F(LeaseCacheTest, DropsTheOldestOfTooManyRequests) {
  LeaseCache cache(1, one_);
  for (uint32_t i = 0; i < 1000; ++i) cache.Prefetch(reader_, Lease(i % 100));
  MU_ASSERT_OK(cache.Get(reader_, Lease(99)).status());
  EXPECT_LE(cache.bytes(), one_);
}

TEST_F(LeaseCacheTest, ManyThreadsGetTheSameAndDifferentLeases) {
  LeaseCache cache(2, 5 * one_);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      SplitMix random(static_cast<uint64_t>(t));
      for (int i = 0; i < 200; ++i) {
        const uint32_t index = static_cast<uint32_t>(random.Below(20));
        cache.Prefetch(reader_, Lease(static_cast<uint32_t>(random.Below(20))));
        const auto data = cache.Get(reader_, Lease(index));
        ASSERT_THAT(data, testing::IsOk());
        const auto ids = Values<int64_t>((*data)->MakeBatch(0), "id");
        ASSERT_EQ(*std::min_element(ids.begin(), ids.end()), index * 10);
        if (i % 50 == 49) cache.Drop(reader_.get());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_LE(cache.bytes(), 5 * one_);
}

TEST_F(LeaseCacheTest, EndsWithRequestsWaiting) {
  for (int i = 0; i < 20; ++i) {
    LeaseCache cache(2, 3 * one_);
    for (uint32_t index = 0; index < 20; ++index) cache.Prefetch(reader_, Lease(index));
  }
}

}  // namespace
}  // namespace mu
