// A warm start: some values of another model's checkpoint under other names, with and without
// slots.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/status.h"
#include "common/checkpoint/safetensors.h"
#include "common/checkpoint/tensor_names.h"
#include "common/env/file.h"
#include "common/sharding/initializer.h"
#include "psserver/checkpoint/checkpoint.h"
#include "psserver/store/store.h"
#include "psserver/store/store_cut.h"
#include "tests/testing/matchers.h"

namespace mu {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr uint32_t kPartitions = 2;
constexpr float kFresh = 0.25f;  // what Adagrad's slot begins with

// A variable [4] and a table of 6 rows of 2, both with Adagrad.
pb::RoutingProto Model(const std::string& variable, const std::string& table) {
  pb::RoutingProto routing;
  routing.set_version(1);
  routing.add_servers();
  const auto adagrad = [](pb::OptimizerProto* optimizer) {
    optimizer->mutable_adagrad()->set_learning_rate(0.5f);
    optimizer->mutable_adagrad()->set_initial_accumulator(kFresh);
  };
  pb::VariableProto* v = routing.add_variables();
  v->set_id(1);
  v->set_name(variable);
  v->set_dtype(pb::FLOAT32);
  v->mutable_shape()->add_dims(4);
  v->set_trainable(true);
  v->add_partition_starts(0);
  v->add_placement(0);
  adagrad(v->mutable_optimizer());
  pb::TableProto* t = routing.add_tables();
  t->set_id(2);
  t->set_name(table);
  t->set_rows(6);
  t->set_dim(2);
  t->set_partitions(kPartitions);
  t->mutable_initializer()->mutable_constant()->set_value(9);
  for (uint32_t p = 0; p < kPartitions; ++p) t->add_placement(0);
  adagrad(t->mutable_optimizer());
  return routing;
}

class TakenValuesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    MU_ASSERT_OK_AND_ASSIGN(auto directory, TempDirectory::Create("taken_values"));
    directory_ = std::make_unique<TempDirectory>(std::move(directory));
    // The other model: all of the variable, and rows 1 and 2 of the table.
    Store other;
    MU_ASSERT_OK(other.Configure(Model("old/w", "old/t"), 0));
    const float value[] = {1, 2, 3, 4}, slot[] = {5, 6, 7, 8};
    VariablePartition& w = *other.directory()->variable(1)->partitions[0];
    w.Assign(value);
    w.SetSlot(0, slot);
    w.SetUpdates(11);
    for (const int64_t id : {1, 2}) {
      TablePartition& t = *other.directory()->table(2)->partitions[id % kPartitions];
      const float row[] = {10.0f * id, 10.0f * id + 1, 20.0f * id, 20.0f * id + 1};
      t.SetColumns({id}, 0, 4, row);
    }
    files_ = Save(other, "other");
    MU_ASSERT_OK(mine_.Configure(Model("new/w", "new/t"), 0));
  }
  std::string Path(const std::string& name) const { return JoinPath(directory_->path(), name); }

  CheckpointFiles Save(const Store& store, const std::string& folder) {
    CutCopies copies;
    auto cut = StoreCut::Prepare(store.directory(), &copies);
    MU_CHECK(cut.ok());
    (*cut)->Take();
    const auto saved = SaveCheckpointFile(
        cut->get(), {{{.function = 3, .part = 0, .begin = 0, .end = 5}}, nullptr}, Path(folder),
        "ps-0.safetensors", [](const std::function<void()>& read) {
          if (read != nullptr) read();
          return absl::OkStatus();
        });
    MU_CHECK(saved.ok());
    CheckpointFiles files;
    *files.Add() = saved->file;
    return files;
  }
  static pb::TakenValuesProto Take(const std::vector<std::pair<std::string, std::string>>& names,
                                   bool slots) {
    pb::TakenValuesProto take;
    take.set_slots(slots);
    for (const auto& [own, from] : names) {
      take.add_names()->set_own(own);
      take.mutable_names()->rbegin()->set_from(from);
    }
    return take;
  }
  // A tensor of what the store holds now.
  std::vector<float> Held(const std::string& name) {
    Save(mine_, "mine");
    auto file = SafetensorsReader::Open(Path("mine/ps-0.safetensors"));
    MU_CHECK(file.ok());
    const TensorEntry* entry = file->Find(name);
    if (entry == nullptr) return {};
    std::vector<float> values((entry->end - entry->begin) / sizeof(float));
    MU_CHECK(file->Read(*entry, 0, values.data(), values.size() * sizeof(float)).ok());
    return values;
  }

  std::unique_ptr<TempDirectory> directory_;
  CheckpointFiles files_;
  Store mine_;
};

TEST_F(TakenValuesTest, ValuesUnderOtherNamesWithNewSlots) {
  const auto take = Take({{"new/w", "old/w"}, {"new/t", "old/t"}}, /*slots=*/false);
  MU_ASSERT_OK(VerifyCheckpointFiles(*mine_.directory(), Path("other"), files_, &take));
  MU_ASSERT_OK_AND_ASSIGN(const LoadedCheckpoint loaded,
                          LoadCheckpoint(*mine_.directory(), Path("other"), files_, 0, &take));
  EXPECT_EQ(loaded.rows, 2u);
  EXPECT_EQ(loaded.updates, 0u) << "another job's";
  EXPECT_THAT(Held("variables/new/w/0/value"), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(Held("variables/new/w/0/slot_0"), Each(kFresh));
  EXPECT_THAT(Held("tables/new/t/0/values"), ElementsAre(20, 21));
  EXPECT_THAT(Held("tables/new/t/1/values"), ElementsAre(10, 11));
  EXPECT_THAT(Held("tables/new/t/1/slot_0"), Each(kFresh));
  // Rows that the other model never touched have this one's initial values.
  float row[2];
  mine_.directory()->table(2)->partitions[1]->Pull({3}, /*read_only=*/true, row);
  EXPECT_THAT(row, Each(9));
}

TEST_F(TakenValuesTest, SlotsToo) {
  const auto take = Take({{"new/w", "old/w"}, {"new/t", "old/t"}}, /*slots=*/true);
  MU_ASSERT_OK(LoadCheckpoint(*mine_.directory(), Path("other"), files_, 0, &take).status());
  EXPECT_THAT(Held("variables/new/w/0/slot_0"), ElementsAre(5, 6, 7, 8));
  EXPECT_THAT(Held("tables/new/t/0/slot_0"), ElementsAre(40, 41));
  EXPECT_THAT(Held("tables/new/t/1/values"), ElementsAre(10, 11));
}

TEST_F(TakenValuesTest, OnlyWhatIsNamed) {
  const auto take = Take({{"new/w", "old/w"}}, /*slots=*/false);
  MU_ASSERT_OK(LoadCheckpoint(*mine_.directory(), Path("other"), files_, 0, &take).status());
  EXPECT_THAT(Held("variables/new/w/0/value"), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(Held("tables/new/t/1/values"), IsEmpty());
}

// A second variable and a second table of the same source.
class SeveralTakenTest : public TakenValuesTest {
 protected:
  // The second table has `rows` rows in `partitions` partitions.
  static pb::RoutingProto TwoOfEach(uint64_t rows, uint32_t partitions) {
    pb::RoutingProto routing = Model("new/w", "new/t");
    const pb::RoutingProto second = Model("new/w2", "new/t2");
    *routing.add_variables() = second.variables(0);
    routing.mutable_variables(1)->set_id(3);
    *routing.add_tables() = second.tables(0);
    pb::TableProto* const table = routing.mutable_tables(1);
    table->set_id(4);
    table->set_rows(rows);
    table->set_partitions(partitions);
    table->clear_placement();
    for (uint32_t p = 0; p < partitions; ++p) table->add_placement(0);
    return routing;
  }
  void Configure(const pb::RoutingProto& routing) { MU_ASSERT_OK(mine_.Configure(routing, 0)); }
  absl::StatusOr<LoadedCheckpoint> Load(
      const std::vector<std::pair<std::string, std::string>>& names, bool slots) {
    const auto take = Take(names, slots);
    MU_RETURN_IF_ERROR(VerifyCheckpointFiles(*mine_.directory(), Path("other"), files_, &take));
    return LoadCheckpoint(*mine_.directory(), Path("other"), files_, 0, &take);
  }
};

TEST_F(SeveralTakenTest, EachGetsTheValuesOfItsSource) {
  Configure(TwoOfEach(6, kPartitions));
  MU_ASSERT_OK_AND_ASSIGN(
      const LoadedCheckpoint loaded,
      Load({{"new/w", "old/w"}, {"new/w2", "old/w"}, {"new/t", "old/t"}, {"new/t2", "old/t"}},
           /*slots=*/false));
  EXPECT_EQ(loaded.rows, 4u) << "two in each table";
  for (const char* variable : {"variables/new/w/0/", "variables/new/w2/0/"}) {
    EXPECT_THAT(Held(absl::StrCat(variable, "value")), ElementsAre(1, 2, 3, 4)) << variable;
    EXPECT_THAT(Held(absl::StrCat(variable, "slot_0")), Each(kFresh)) << variable;
  }
  for (const char* table : {"tables/new/t/", "tables/new/t2/"}) {
    EXPECT_THAT(Held(absl::StrCat(table, "0/values")), ElementsAre(20, 21)) << table;
    EXPECT_THAT(Held(absl::StrCat(table, "1/values")), ElementsAre(10, 11)) << table;
    EXPECT_THAT(Held(absl::StrCat(table, "0/slot_0")), ElementsAre(kFresh, kFresh)) << table;
    EXPECT_THAT(Held(absl::StrCat(table, "1/slot_0")), ElementsAre(kFresh, kFresh)) << table;
  }
}

TEST_F(SeveralTakenTest, EachGetsItsSlots) {
  Configure(TwoOfEach(6, kPartitions));
  MU_ASSERT_OK(
      Load({{"new/w", "old/w"}, {"new/w2", "old/w"}, {"new/t", "old/t"}, {"new/t2", "old/t"}},
           /*slots=*/true)
          .status());
  for (const char* variable : {"variables/new/w/0/", "variables/new/w2/0/"}) {
    EXPECT_THAT(Held(absl::StrCat(variable, "value")), ElementsAre(1, 2, 3, 4)) << variable;
    EXPECT_THAT(Held(absl::StrCat(variable, "slot_0")), ElementsAre(5, 6, 7, 8)) << variable;
  }
  for (const char* table : {"tables/new/t/", "tables/new/t2/"}) {
    EXPECT_THAT(Held(absl::StrCat(table, "1/values")), ElementsAre(10, 11)) << table;
    EXPECT_THAT(Held(absl::StrCat(table, "0/slot_0")), ElementsAre(40, 41)) << table;
    EXPECT_THAT(Held(absl::StrCat(table, "1/slot_0")), ElementsAre(20, 21)) << table;
  }
}

// One of them has no optimizer: only the other takes the slot.
TEST_F(SeveralTakenTest, OneIsFrozen) {
  pb::RoutingProto routing = TwoOfEach(6, kPartitions);
  routing.mutable_variables(0)->clear_optimizer();
  routing.mutable_variables(0)->set_trainable(false);
  routing.mutable_tables(0)->clear_optimizer();
  Store frozen;
  MU_ASSERT_OK(frozen.Configure(routing, 0));
  const auto take = Take(
      {{"new/w", "old/w"}, {"new/w2", "old/w"}, {"new/t", "old/t"}, {"new/t2", "old/t"}}, true);
  MU_ASSERT_OK(LoadCheckpoint(*frozen.directory(), Path("other"), files_, 0, &take).status());
  const auto directory = frozen.directory();
  for (const uint32_t id : {1, 3}) {
    float value[4] = {};
    directory->variable(id)->partitions[0]->Read(value);
    EXPECT_THAT(value, ElementsAre(1, 2, 3, 4)) << id;
  }
  for (const uint32_t id : {2, 4}) {
    float row[2] = {};
    directory->table(id)->partitions[0]->Pull({2}, /*read_only=*/true, row);
    EXPECT_THAT(row, ElementsAre(20, 21)) << id;
  }
}

TEST_F(SeveralTakenTest, OneOfThemDoesNotFit) {
  // Another shape.
  pb::RoutingProto routing = TwoOfEach(6, kPartitions);
  routing.mutable_variables(1)->mutable_shape()->set_dims(0, 5);
  Configure(routing);
  const auto loaded = Load({{"new/w", "old/w"}, {"new/w2", "old/w"}}, /*slots=*/false);
  EXPECT_EQ(loaded.status().code(), absl::StatusCode::kFailedPrecondition) << loaded.status();
  // It is found before anything is changed.
  EXPECT_THAT(Held("variables/new/w/0/value"), Each(0));
}

TEST_F(SeveralTakenTest, ATableOfMorePartitionsThanItsSource) {
  Configure(TwoOfEach(6, kPartitions + 1));
  const auto loaded = Load({{"new/t", "old/t"}, {"new/t2", "old/t"}}, /*slots=*/false);
  EXPECT_EQ(loaded.status().code(), absl::StatusCode::kDataLoss) << loaded.status();
  EXPECT_THAT(std::string(loaded.status().message()), HasSubstr("tables/old/t/2/ids"));
}

// The ids are read once for both, and belong to the first one only.
TEST_F(SeveralTakenTest, ATableOfFewerRowsThanItsSource) {
  Configure(TwoOfEach(2, kPartitions));
  const auto loaded = Load({{"new/t", "old/t"}, {"new/t2", "old/t"}}, /*slots=*/false);
  EXPECT_EQ(loaded.status().code(), absl::StatusCode::kDataLoss) << loaded.status();
  EXPECT_THAT(std::string(loaded.status().message()), HasSubstr("holds id 2"));
}

TEST_F(TakenValuesTest, WhatTheFilesDoNotHave) {
  const auto take = Take({{"new/w", "old/v"}}, /*slots=*/false);
  const absl::Status status =
      VerifyCheckpointFiles(*mine_.directory(), Path("other"), files_, &take);
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()), HasSubstr("variables/old/v/0/value"));
  // Without names it is a checkpoint of another model.
  EXPECT_EQ(VerifyCheckpointFiles(*mine_.directory(), Path("other"), files_).code(),
            absl::StatusCode::kDataLoss);
}

}  // namespace
}  // namespace mu
