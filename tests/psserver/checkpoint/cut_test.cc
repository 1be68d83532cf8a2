// A cut is read bit by bit while the rows change, and is what it was.
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <thread>
#include <vector>

#include "common/base/hash.h"
#include "psserver/store/store_cut.h"
#include "tests/psserver/model.h"
#include "tests/testing/matchers.h"

namespace mu {
namespace {

using Rows = std::map<int64_t, std::vector<float>>;  // [value | slots]

constexpr uint32_t kItems = 100;  // dim 16, Adagrad: rows of 32 floats
constexpr uint32_t kPartition = 3;

class CutTest : public ::testing::Test {
 protected:
  CutTest() {
    pb::RoutingProto routing = testing::SmallModel(1);
    routing.mutable_tables(0)->set_rows(64 * 700);
    MU_CHECK(store_.Configure(routing, 0).ok());
    directory_ = store_.directory();
    partition_ = directory_->table(kItems)->partitions[kPartition].get();
  }

  int64_t SomeId(SplitMix* random) {
    return static_cast<int64_t>(random->Below(700) * 64 + kPartition);
  }
  // A push of some rows, a pull that may create some, or an assignment that may, too.
  void Change(SplitMix* random) {
    std::vector<int64_t> ids;
    for (uint64_t n = random->Below(10); n > 0; --n) {
      const int64_t id = SomeId(random);
      if (std::find(ids.begin(), ids.end(), id) == ids.end()) ids.push_back(id);
    }
    std::vector<float> values(ids.size() * 16, static_cast<float>(random->Unit()));
    const uint64_t kind = random->Below(5);
    if (kind == 0) {
      partition_->Pull(ids, false, values.data());
    } else if (kind == 1) {
      partition_->AssignRows(ids, values.data());
    } else {
      partition_->Push(ids, values.data(),
                       directory_->table(100)->definition->optimizer.RatesOf({}));
    }
  }
  // All rows as they are now, by a cut of its own kind: without changes while it is read.
  Rows Now() {
    CutCopies copies;
    auto cut = StoreCut::Prepare(directory_, &copies);
    MU_CHECK(cut.ok());
    (*cut)->Take();
    const Rows rows = ReadAll([] {});
    return rows;
  }
  template <typename Between>
  Rows ReadAll(Between between) {
    std::vector<int64_t> ids(partition_->CutRows());
    std::vector<float> values(ids.size() * 16), slots(ids.size() * 16);
    uint64_t position = 0;
    size_t got = 0;
    while (const size_t n = partition_->ReadCutIds(&position, 7, ids.data() + got)) {
      got += n;
      between();
    }
    EXPECT_EQ(got, ids.size());
    EXPECT_TRUE(std::is_sorted(ids.begin(), ids.end()));
    for (const bool last : {false, true}) {
      std::vector<float>& out = last ? slots : values;
      position = got = 0;
      while (const size_t n = partition_->ReadCut(&position, last ? 16 : 0, 16, 5, last,
                                                  out.data() + got * 16)) {
        got += n;
        between();
      }
      EXPECT_EQ(got, ids.size());
    }
    Rows rows;
    for (size_t i = 0; i < ids.size(); ++i) {
      rows[ids[i]].assign(values.begin() + i * 16, values.begin() + (i + 1) * 16);
      rows[ids[i]].insert(rows[ids[i]].end(), slots.begin() + i * 16, slots.begin() + (i + 1) * 16);
    }
    return rows;
  }

  Store store_;
  std::shared_ptr<const StoreDirectory> directory_;
  TablePartition* partition_;
};

TEST_F(CutTest, RowsAreThoseOfTheCutWhateverHappensMeanwhile) {
  for (uint64_t seed = 0; seed < 30; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    SplitMix random(seed);
    for (int i = 0; i < 20; ++i) Change(&random);
    const Rows before = Now();
    CutCopies copies;
    MU_ASSERT_OK_AND_ASSIGN(const auto cut, StoreCut::Prepare(directory_, &copies));
    cut->Take();
    const Rows read = ReadAll([&] {
      for (uint64_t n = random.Below(3); n > 0; --n) Change(&random);
    });
    ASSERT_TRUE(read == before);
    const size_t held = copies.bytes();
    for (int i = 0; i < 20; ++i) Change(&random);
    EXPECT_EQ(copies.bytes(), held) << "what has been written needs no copies";
    partition_->EndCut();
    EXPECT_EQ(copies.bytes(), 0u);
  }
}

TEST_F(CutTest, VariablesAreThoseOfTheCut) {
  VariablePartition* const kernel = directory_->variable(5)->partitions[1].get();  // Adagrad
  const size_t bytes = kernel->value_bytes(), n = kernel->elements();
  std::vector<float> gradient(n, 0.5f), value(n), slot(n), expected_value(n), expected_slot(n);
  const StepRates rates = directory_->variable(5)->definition->optimizer.RatesOf({});
  kernel->ApplyGradient(gradient.data(), rates);
  CutCopies copies;
  const auto read = [&](std::vector<float>* v, std::vector<float>* s) {
    for (size_t offset = 0; offset < bytes; offset += 1000) {
      const size_t some = std::min<size_t>(1000, bytes - offset);
      kernel->ReadCut(0, offset, some, reinterpret_cast<char*>(v->data()) + offset);
      kernel->ReadCut(1, offset, some, reinterpret_cast<char*>(s->data()) + offset);
    }
  };
  kernel->BeginCut(&copies);
  read(&expected_value, &expected_slot);
  EXPECT_EQ(copies.bytes(), 0u) << "nothing changed, nothing copied";
  kernel->ApplyGradient(gradient.data(), rates);
  const size_t held = copies.bytes();
  EXPECT_GE(held, 2 * bytes);
  kernel->Assign(value.data());
  kernel->AssignAdd(gradient.data());
  EXPECT_EQ(copies.bytes(), held) << "one copy";
  read(&value, &slot);
  EXPECT_TRUE(value == expected_value);
  EXPECT_TRUE(slot == expected_slot);
  EXPECT_EQ(kernel->CutUpdates(), 1u);
  EXPECT_EQ(kernel->updates(), 3u);
  kernel->EndCut();
  kernel->EndCut();
  EXPECT_EQ(copies.bytes(), 0u);

  kernel->BeginCut(&copies);
  read(&expected_value, &expected_slot);
  kernel->AssignRows({7, 2}, reinterpret_cast<const char*>(gradient.data()));
  EXPECT_EQ(copies.bytes(), held);
  read(&value, &slot);
  EXPECT_TRUE(value == expected_value);
  kernel->EndCut();
}

TEST_F(CutTest, ACutThatIsGivenUpEndsAllMarks) {
  SplitMix random(1);
  for (int i = 0; i < 10; ++i) Change(&random);
  CutCopies copies;
  {
    MU_ASSERT_OK_AND_ASSIGN(const auto cut, StoreCut::Prepare(directory_, &copies));
    cut->Take();
    for (int i = 0; i < 10; ++i) Change(&random);
    EXPECT_GT(copies.bytes(), 0u);
  }
  EXPECT_EQ(copies.bytes(), 0u);
  for (int i = 0; i < 10; ++i) Change(&random);
  EXPECT_EQ(copies.bytes(), 0u);
  EXPECT_EQ(partition_->CutRows(), 0u);
}

TEST(CutCopiesTest, WhoWaitsGoesOnWhenMemoryIsFreed) {
  CutCopies copies;
  copies.set_limit(100);
  copies.Add(100);
  EXPECT_TRUE(copies.HasRoom());
  copies.Add(1);
  EXPECT_FALSE(copies.WaitForRoom(absl::ZeroDuration()));
  std::thread writer([&] { copies.Release(50); });
  EXPECT_TRUE(copies.WaitForRoom(absl::InfiniteDuration()));
  writer.join();
}

}  // namespace
}  // namespace mu
