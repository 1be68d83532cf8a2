#include "psserver/store/store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <thread>
#include <vector>

#include "common/base/hash.h"
#include "common/sharding/placement.h"
#include "tests/psserver/model.h"
#include "tests/testing/matchers.h"

namespace mu {
namespace {

using ::mu::testing::HasCode;
using ::mu::testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

// A table as the simplest thing that could work.
class ModelTable {
 public:
  explicit ModelTable(const pb::TableProto& proto)
      : proto_(proto), initializer_(proto.initializer(), proto.name()) {}
  std::vector<float> Pull(int64_t id, bool read_only) {
    auto it = rows_.find(id);
    if (it != rows_.end()) return {it->second.begin(), it->second.begin() + proto_.dim()};
    std::vector<float> row(proto_.dim());
    initializer_.FillRow(id, row.data(), row.size());
    if (!read_only) Create(id);
    return row;
  }
  void Push(int64_t id, const std::vector<float>& gradient) {
    if (rows_.count(id) == 0) Create(id);
    std::vector<float>& row = rows_[id];
    const auto& adagrad = proto_.optimizer().adagrad();
    for (uint32_t c = 0; c < proto_.dim(); ++c) {
      float& sum = row[proto_.dim() + c];
      sum += gradient[c] * gradient[c];
      row[c] -= adagrad.learning_rate() * gradient[c] / (std::sqrt(sum) + 1e-10f);
    }
  }
  size_t size() const { return rows_.size(); }

 private:
  void Create(int64_t id) {
    std::vector<float>& row = rows_[id];
    row.resize(2 * proto_.dim(), proto_.optimizer().adagrad().initial_accumulator());
    initializer_.FillRow(id, row.data(), proto_.dim());
  }
  const pb::TableProto proto_;
  const RowInitializer initializer_;
  std::map<int64_t, std::vector<float>> rows_;
};

pb::RoutingProto OneVariable(const std::vector<int64_t>& dims) {
  pb::RoutingProto routing;
  routing.add_servers();
  pb::VariableProto* const variable = routing.add_variables();
  variable->set_name("x");
  variable->set_dtype(pb::FLOAT32);
  for (const int64_t dim : dims) variable->mutable_shape()->add_dims(dim);
  variable->mutable_initializer()->mutable_normal()->set_stddev(1);
  variable->add_partition_starts(0);
  variable->add_placement(0);
  return routing;
}

// Each row would be initialized on its own.
TEST(StoreTest, RowsWithoutColumnsTakeNoTime) {
  Store store;
  MU_EXPECT_OK(store.Configure(OneVariable({int64_t{1} << 49, 0}), 0));
  EXPECT_EQ(store.Usage().bytes, 0);
}

TEST(StoreTest, AnEmptyAxisDoesNotHideOneThatIsTooLong) {
  Store store;
  EXPECT_THAT(store.Configure(OneVariable({1, int64_t{1} << 40, int64_t{1} << 40, 0}), 0),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("too many elements")));
}

pb::RoutingProto OneTable(uint64_t rows, uint32_t partitions) {
  pb::RoutingProto routing;
  routing.add_servers();
  pb::TableProto* const table = routing.add_tables();
  table->set_name("user");
  table->set_rows(rows);
  table->set_dim(1);
  table->set_partitions(partitions);
  for (uint32_t p = 0; p < partitions; ++p) table->add_placement(0);
  return routing;
}

// No server could hold it: the definition is wrong, not the machine.
TEST(StoreTest, ATableThatNoServerCanHoldIsRefused) {
  Store store;
  EXPECT_THAT(store.Configure(OneTable((uint64_t{1} << 46) + 1, 4), 0),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("table 'user'"), HasSubstr("or more partitions"))));
}

TEST(StoreTest, WhatHasNoRoomIsNamedWithARemedy) {
  Store store;
  const auto no_room = [](const char* name) {
    return StatusIs(absl::StatusCode::kResourceExhausted,
                    AllOf(HasSubstr(name), HasSubstr("no memory for "),
                          HasSubstr("; start more servers, or give it fewer rows or columns")));
  };
  // Four partitions of 2^46 bytes, more than the address space.
  EXPECT_THAT(store.Configure(OneTable(uint64_t{1} << 46, 4), 0), no_room("table 'user': "));
  EXPECT_THAT(store.Configure(OneVariable({1'000'000'000'000'000}), 0),
              no_room("variable 'x': no memory for 4000000000000000 bytes"));
  EXPECT_EQ(store.Usage().bytes, 0) << "all or nothing";
}

TEST(StoreTest, ConfigureSaysWhatItChanged) {
  Store store;
  MU_ASSERT_OK_AND_ASSIGN(DefinitionsChange change, store.Configure(OneVariable({3}), 0));
  EXPECT_EQ(change, DefinitionsChange::kAdded);
  MU_ASSERT_OK_AND_ASSIGN(change, store.Configure(OneVariable({3}), 0));
  EXPECT_EQ(change, DefinitionsChange::kNone);
  EXPECT_FALSE(store.Configure(OneVariable({4}), 0).ok());
  MU_ASSERT_OK_AND_ASSIGN(change, store.Configure(OneVariable({4}), 0, /*replace=*/true));
  EXPECT_EQ(change, DefinitionsChange::kReplaced);
}

TEST(StoreTest, RandomOperationsAgreeWithASimpleModel) {
  for (const uint32_t partitions : {1u, 7u, 64u}) {
    pb::RoutingProto routing = testing::SmallModel(1);
    pb::TableProto* proto = routing.mutable_tables(0);
    proto->set_partitions(partitions);
    proto->clear_placement();
    MU_ASSERT_OK(PlaceAll(&routing));
    Store store;
    MU_ASSERT_OK(store.Configure(routing, 0));
    const auto directory = store.directory();
    StoredTable* table = directory->table(proto->id());
    ModelTable model(*proto);
    const uint64_t seed = 99 + partitions;
    SplitMix random(seed);
    const uint32_t dim = proto->dim();
    for (int i = 0; i < 3000; ++i) {
      const uint32_t p = static_cast<uint32_t>(random.Below(partitions));
      std::vector<int64_t> ids;
      for (uint64_t n = random.Below(20); n > 0; --n) {
        const int64_t id =
            static_cast<int64_t>(random.Below(proto->rows() / partitions) * partitions + p);
        if (std::find(ids.begin(), ids.end(), id) == ids.end()) ids.push_back(id);
      }
      std::vector<float> values(ids.size() * dim);
      if (random.Below(2) == 0) {
        const bool read_only = random.Below(3) == 0;
        table->partitions[p]->Pull(ids, read_only, values.data());
        for (size_t k = 0; k < ids.size(); ++k) {
          const std::vector<float> row(values.begin() + k * dim, values.begin() + (k + 1) * dim);
          ASSERT_EQ(row, model.Pull(ids[k], read_only)) << "seed " << seed << " operation " << i;
        }
      } else {
        for (float& v : values) v = static_cast<float>(random.Unit() - 0.5);
        table->partitions[p]->Push(ids, values.data(), table->definition->optimizer.RatesOf({}));
        for (size_t k = 0; k < ids.size(); ++k) {
          model.Push(ids[k], {values.begin() + k * dim, values.begin() + (k + 1) * dim});
        }
      }
    }
    EXPECT_EQ(store.Usage().rows, model.size());
  }
}

TEST(StoreTest, ReadOnlyPullsCreateNothing) {
  pb::RoutingProto routing = testing::SmallModel(1);
  Store store;
  MU_ASSERT_OK(store.Configure(routing, 0));
  const auto directory = store.directory();
  TablePartition* partition = directory->table(100)->partitions[3].get();
  std::vector<int64_t> ids = {3, 67, 131};
  std::vector<float> first(3 * 16), second(3 * 16);
  partition->Pull(ids, true, first.data());
  EXPECT_EQ(partition->rows(), 0u);
  partition->Pull(ids, false, second.data());
  EXPECT_EQ(partition->rows(), 3u);
  EXPECT_EQ(first, second);
  EXPECT_THAT(partition->Ids(), ::testing::ElementsAre(3, 67, 131));
}

TEST(StoreTest, ConfigureIsIdempotentAndAdditive) {
  pb::RoutingProto routing = testing::SmallModel(2);
  pb::RoutingProto first = routing;
  first.clear_tables();
  Store store;
  MU_ASSERT_OK(store.Configure(first, 1));
  const auto before = store.directory();
  MU_ASSERT_OK(store.Configure(routing, 1));
  MU_ASSERT_OK(store.Configure(routing, 1));
  MU_ASSERT_OK(store.Configure(first, 1)) << "a late repeat takes nothing away";
  const auto after = store.directory();
  EXPECT_EQ(after->tables.size(), 2u);
  for (const auto& [id, variable] : before->variables)
    EXPECT_EQ(after->variable(id), variable.get());
}

TEST(StoreTest, ContradictionsAreRefusedWhole) {
  pb::RoutingProto routing = testing::SmallModel(2);
  Store store;
  MU_ASSERT_OK(store.Configure(routing, 0));
  pb::RoutingProto other = routing;
  other.mutable_tables(0)->set_dim(5);
  EXPECT_THAT(store.Configure(other, 0),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("table 'items' (id 100)")));
  EXPECT_THAT(store.Configure(routing, 1), HasCode(absl::StatusCode::kFailedPrecondition));
  other = routing;
  other.add_tables()->set_name("broken");
  other.mutable_tables(2)->set_id(9);
  EXPECT_THAT(store.Configure(other, 0), HasCode(absl::StatusCode::kInvalidArgument));
  EXPECT_EQ(store.directory()->variables.size(), static_cast<size_t>(routing.variables_size()));
}

TEST(StoreTest, InitialValuesAreThoseOfTheWholeVariable) {
  // Partitioned or not, a variable begins with the same values.
  pb::RoutingProto whole = testing::SmallModel(1), cut = testing::SmallModel(1);
  cut.mutable_variables(0)->clear_partition_starts();
  cut.mutable_variables(0)->clear_placement();
  cut.mutable_variables(0)->mutable_partitioner()->set_fixed_shards(3);
  MU_ASSERT_OK(PlaceAll(&cut));
  Store a, b;
  MU_ASSERT_OK(a.Configure(whole, 0));
  MU_ASSERT_OK(b.Configure(cut, 0));
  const auto da = a.directory(), db = b.directory();
  const VariablePartition* one = da->variable(0)->partitions[0].get();
  std::vector<float> expected(one->elements()), found(one->elements());
  one->Read(expected.data());
  size_t at = 0;
  for (const auto& partition : db->variable(0)->partitions) {
    partition->Read(found.data() + at);
    at += partition->elements();
  }
  EXPECT_EQ(at, expected.size());
  EXPECT_EQ(found, expected);
}

TEST(StoreTest, ResetBringsBackInitialValues) {
  pb::RoutingProto routing = testing::SmallModel(1);
  Store store;
  MU_ASSERT_OK(store.Configure(routing, 0));
  std::vector<int64_t> ids = {3};
  std::vector<float> before(16), row(16, 1.0f);
  {
    const auto directory = store.directory();
    directory->table(100)->partitions[3]->Pull(ids, true, before.data());
    const StoredTable* items = directory->table(100);
    items->partitions[3]->Push(ids, row.data(), items->definition->optimizer.RatesOf({}));
  }
  EXPECT_EQ(store.Usage().rows, 1u);
  MU_ASSERT_OK(store.Reset());
  EXPECT_EQ(store.Usage().rows, 0u);
  store.directory()->table(100)->partitions[3]->Pull(ids, true, row.data());
  EXPECT_EQ(row, before);
}

TEST(StoreTest, ConcurrentPushesAreAllApplied) {
  pb::RoutingProto routing = testing::SmallModel(1);
  routing.mutable_tables(1)->mutable_optimizer()->mutable_sgd()->set_learning_rate(1);
  Store store;
  MU_ASSERT_OK(store.Configure(routing, 0));
  const auto directory = store.directory();
  std::vector<std::thread> threads;
  constexpr int kThreads = 4, kPushes = 500;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      const std::vector<int64_t> ids = {5, 69};
      const std::vector<float> downhill(2 * 4, -1.0f);
      const StoredTable* users = directory->table(101);
      const StepRates rates = users->definition->optimizer.RatesOf({});
      const int64_t one = 1;
      for (int i = 0; i < kPushes; ++i) {
        users->partitions[5]->Push(ids, downhill.data(), rates);
        directory->variable(2)->partitions[0]->AssignAdd(&one);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::vector<float> values(8);
  directory->table(101)->partitions[5]->Pull(std::vector<int64_t>{5, 69}, true, values.data());
  EXPECT_THAT(values, ::testing::Each(static_cast<float>(kThreads * kPushes)));
  int64_t counter = 0;
  directory->variable(2)->partitions[0]->Read(&counter);
  EXPECT_EQ(counter, kThreads * kPushes);
}

}  // namespace
}  // namespace mu
