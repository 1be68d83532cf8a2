// Checkpoints of every kind of optimizer, from the table: values and slots of variables and tables
// come back bit for bit, on another number of servers, and training goes on as if nothing had been.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/check.h"
#include "common/base/hash.h"
#include "common/checkpoint/safetensors.h"
#include "common/env/file.h"
#include "tests/psserver/cluster.h"
#include "tests/testing/example_optimizers.h"
#include "tests/testing/matchers.h"

namespace mu {
namespace {

using testing::ExampleOptimizer;
using testing::PsCluster;
using Files = std::vector<pb::CheckpointFileProto>;
using Tensors = std::map<std::string, std::string>;  // shape and bytes by name

constexpr uint32_t kTable = 10, kDim = 5;

// A matrix in parts, a vector in parts, a scalar, and a table: slots of a number a row differ in
// their shapes.
pb::RoutingProto Model(const muster::OptimizerProto& optimizer, uint32_t servers) {
  pb::RoutingProto routing;
  routing.set_version(1);
  for (uint32_t s = 0; s < servers; ++s) routing.add_servers()->set_index(s);
  const std::vector<std::vector<int64_t>> shapes = {{7, 3, 2}, {9}, {}};
  for (uint32_t id = 0; id < shapes.size(); ++id) {
    pb::VariableProto* v = routing.add_variables();
    v->set_id(id);
    v->set_name(absl::StrCat("variable", id));
    v->set_dtype(pb::FLOAT32);
    v->mutable_shape()->mutable_dims()->Assign(shapes[id].begin(), shapes[id].end());
    v->mutable_initializer()->mutable_normal()->set_stddev(1);
    v->mutable_partitioner()->set_fixed_shards(3);
    *v->mutable_optimizer() = optimizer;
  }
  pb::TableProto* t = routing.add_tables();
  t->set_id(kTable);
  t->set_name("table");
  t->set_rows(60);
  t->set_dim(kDim);
  t->set_partitions(8);
  t->mutable_initializer()->mutable_normal()->set_stddev(1);
  *t->mutable_optimizer() = optimizer;
  MU_CHECK(PlaceAll(&routing).ok());
  return routing;
}

class OptimizerSlotsTest : public ::testing::TestWithParam<ExampleOptimizer> {
 protected:
  OptimizerSlotsTest() : directory_(*TempDirectory::Create("muster_optimizer_slots_test")) {}

  static absl::Status Push(PsCluster* cluster, uint32_t step) {
    SplitMix random(step);
    const auto numbers = [&](size_t n) {
      std::vector<float> values(n);
      for (float& v : values) v = static_cast<float>(random.Unit() - 0.5);
      return values;
    };
    std::vector<int64_t> ids;
    for (int64_t id = 0; id < 50; ++id) {
      if (random.Below(3) == 0) ids.push_back(id);
    }
    const auto matrix = numbers(42), vector = numbers(9), scalar = numbers(1),
               rows = numbers(ids.size() * kDim);
    const VariableWrite writes[] = {{0, VariableWrite::kGradient, matrix.data()},
                                    {1, VariableWrite::kGradient, vector.data()},
                                    {2, VariableWrite::kGradient, scalar.data()}};
    const RowsWrite row_writes[] = {{kTable, ids, rows.data()}};
    PsSession session(&cluster->client(),
                      {.context = cluster->context(), .function = 1, .job_step = step + 1});
    session.BeginStep(step);
    return session.Push(writes, row_writes);
  }

  Files Save(PsCluster* cluster, uint32_t servers, const std::string& name) {
    Files files;
    for (uint32_t s = 0; s < servers; ++s) {
      pb::SaveRequest request;
      *request.mutable_context() = cluster->context();
      request.set_directory(JoinPath(directory_.path(), name));
      request.set_file(absl::StrCat("ps-", s));
      const auto reply = cluster->server(s).Save(request);
      EXPECT_THAT(reply, testing::IsOk());
      if (reply.ok()) files.push_back(reply->file());
    }
    return files;
  }

  void Restore(PsCluster* cluster, uint32_t servers, const std::string& name, const Files& files) {
    for (uint32_t s = 0; s < servers; ++s) {
      pb::RestoreRequest request;
      *request.mutable_context() = cluster->context();
      request.set_directory(JoinPath(directory_.path(), name));
      for (const auto& file : files) *request.add_files() = file;
      EXPECT_THAT(cluster->server(s).Restore(request), testing::IsOk());
    }
  }

  // Of variables and tables, whatever file they are in.
  Tensors Read(const std::string& name, const Files& files) {
    Tensors tensors;
    for (const auto& file : files) {
      auto reader =
          SafetensorsReader::Open(JoinPath(JoinPath(directory_.path(), name), file.name()));
      MU_CHECK(reader.ok());
      for (const TensorEntry& entry : reader->entries()) {
        if (absl::StartsWith(entry.name, "memory/") || absl::EndsWith(entry.name, "/inherits"))
          continue;
        std::string bytes(entry.end - entry.begin, '\0');
        MU_CHECK(reader->Read(entry, 0, bytes.data(), bytes.size()).ok());
        tensors[entry.name] = absl::StrCat(absl::StrJoin(entry.shape, ","), ":", bytes);
      }
    }
    return tensors;
  }

  TempDirectory directory_;
};

TEST_P(OptimizerSlotsTest, ComeBackOnAnotherNumberOfServers) {
  PsCluster saved(2, Model(GetParam().proto, 2)), restored(3, Model(GetParam().proto, 3));
  MU_ASSERT_OK(saved.Configure());
  MU_ASSERT_OK(restored.Configure());
  for (uint32_t step = 0; step < 5; ++step) MU_ASSERT_OK(Push(&saved, step));
  const Files files = Save(&saved, 2, "saved");
  Restore(&restored, 3, "saved", files);
  const Tensors before = Read("saved", files);
  const size_t slots = SlotsOf(GetParam().proto, 2).size();
  size_t found = 0;
  for (const auto& [name, bytes] : before) found += absl::StrContains(name, "/slot_") ? 1 : 0;
  EXPECT_EQ(found, slots * (3 + 3 + 1 + 8)) << "of each partition";
  EXPECT_TRUE(Read("again", Save(&restored, 3, "again")) == before);
  for (PsCluster* cluster : {&saved, &restored}) {
    for (uint32_t step = 5; step < 8; ++step) MU_ASSERT_OK(Push(cluster, step));
  }
  EXPECT_TRUE(Read("on", Save(&restored, 3, "on")) ==
              Read("undisturbed", Save(&saved, 2, "undisturbed")));
}

INSTANTIATE_TEST_SUITE_P(All, OptimizerSlotsTest, ::testing::ValuesIn(testing::ExampleOptimizers()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace mu
