#include "coordinator/cluster/catalog.h"

#include "absl/strings/str_cat.h"
#include "common/env/file.h"
#include "coordinator/cluster/checkpoint_manifest.h"
#include "coordinator/cluster/job_epoch.h"
#include "proto/worker.pb.h"
#include "tests/testing/matchers.h"

namespace mu {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using testing::HasCode;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::StatusIs;

pb::VariableProto Variable(const std::string& name, std::vector<int64_t> dims = {2}) {
  pb::VariableProto proto;
  proto.set_name(name);
  proto.set_dtype(pb::FLOAT32);
  for (int64_t d : dims) proto.mutable_shape()->add_dims(d);
  return proto;
}

// With incarnations 10, 11, ..., and a worker.
std::vector<Member> Servers(uint32_t count) {
  std::vector<Member> members = {{pb::ROLE_WORKER, 0, Incarnation(5), "worker:1"}};
  for (uint32_t s = 0; s < count; ++s)
    members.push_back({pb::ROLE_PSSERVER, s, Incarnation(10 + s), absl::StrCat("ps:", s)});
  return members;
}

constexpr InstallPart kRouting{}, kDataset{InstallPart::Kind::kDataset, 1},
    kFunction{InstallPart::Kind::kFunction, 5};

TEST(Catalog, NamesAreUniqueAcrossVariablesAndTables) {
  Catalog catalog;
  MU_ASSERT_OK(catalog.AddVariable(Variable("a")));
  pb::TableProto table;
  table.set_name("a");
  EXPECT_THAT(catalog.AddTable(table), HasCode(absl::StatusCode::kAlreadyExists));
  EXPECT_THAT(catalog.AddVariable(Variable("")), HasCode(absl::StatusCode::kInvalidArgument));
  MU_ASSERT_OK_AND_ASSIGN(const auto b, catalog.AddVariable(Variable("b")));
  EXPECT_EQ(b.id(), 1u);
}

TEST(Catalog, SaysOnceWhatHasChanged) {
  Catalog catalog;
  MU_ASSERT_OK(catalog.AddVariable(Variable("a")));
  EXPECT_EQ(catalog.version(), 0u) << "nothing to install before it is placed";
  MU_ASSERT_OK(catalog.Route(CoordinatorEpoch(1), Generation(1), Servers(1)));
  EXPECT_EQ(catalog.version(), 0u) << "nor before servers have it";
  catalog.UseRouting();
  const uint64_t routed = catalog.version();
  const pb::DatasetProto dataset = catalog.AddDataset({});
  EXPECT_THAT(catalog.TakeChanged(), ElementsAre(kRouting)) << "its files are not known yet";
  catalog.UpdateDataset(dataset);
  catalog.AddFunction(Fingerprint(5), {});
  catalog.AddFunction(Fingerprint(5), {});
  EXPECT_EQ(catalog.version(), routed + 2);
  EXPECT_EQ(catalog.routing_version(), routed);
  EXPECT_THAT(catalog.TakeChanged(), ElementsAre(kDataset, kFunction));
  EXPECT_THAT(catalog.TakeChanged(), IsEmpty());
}

TEST(Catalog, ARequestTakesAContext) {
  Catalog catalog;
  MU_ASSERT_OK(catalog.AddVariable(Variable("a")));
  MU_ASSERT_OK(catalog.Route(CoordinatorEpoch(1), Generation(4), Servers(2)));
  catalog.UseRouting();
  pb::DatasetProto dataset = catalog.AddDataset({});
  dataset.add_files("one.csv");
  catalog.UpdateDataset(dataset);
  pb::FunctionProto function;
  function.set_name("step");
  catalog.AddFunction(Fingerprint(5), function);
  const Catalog::Request& routing = catalog.RequestOf(kRouting);
  EXPECT_STREQ(routing.method, "/muster.Worker/Configure");
  EXPECT_STREQ(catalog.RequestOf(kDataset).method, "/muster.Worker/InstallDataset");
  EXPECT_STREQ(catalog.RequestOf(kFunction).method, "/muster.Worker/InstallFunction");

  pb::InstallFunctionRequest with_context;
  with_context.mutable_context()->set_job(7);
  const std::string context = with_context.SerializeAsString();
  pb::ConfigureWorkerRequest configure;
  ASSERT_TRUE(configure.ParseFromString(context + *routing.bytes));
  EXPECT_EQ(configure.context().job(), 7u);
  EXPECT_EQ(configure.routing().SerializeAsString(), catalog.routing().SerializeAsString());
  pb::InstallDatasetRequest install;
  ASSERT_TRUE(install.ParseFromString(context + *catalog.RequestOf(kDataset).bytes));
  EXPECT_EQ(install.context().job(), 7u);
  EXPECT_EQ(install.dataset().files(0), "one.csv");
  ASSERT_TRUE(with_context.ParseFromString(context + *catalog.RequestOf(kFunction).bytes));
  EXPECT_EQ(with_context.context().job(), 7u);
  EXPECT_EQ(with_context.function().name(), "step");
  EXPECT_EQ(with_context.fingerprint(), 5u);
}

TEST(Catalog, WhatHasItsPlacesKeepsThem) {
  Catalog catalog;
  EXPECT_EQ(catalog.routed(), nullptr);
  MU_ASSERT_OK(catalog.AddVariable(Variable("small")));
  MU_ASSERT_OK_AND_ASSIGN(const auto first,
                          catalog.Route(CoordinatorEpoch(3), Generation(7), Servers(2)));
  EXPECT_EQ(first->version(), (uint64_t{2} << 32) + 1) << "over all of older coordinators";
  EXPECT_EQ(first->generation(), 7u);
  ASSERT_EQ(first->servers_size(), 2);
  EXPECT_EQ(first->servers(1).incarnation(), 11u);
  // One that is larger would come first if all were placed again.
  MU_ASSERT_OK(catalog.AddVariable(Variable("large", {100})));
  MU_ASSERT_OK_AND_ASSIGN(const auto second,
                          catalog.Route(CoordinatorEpoch(3), Generation(8), Servers(2)));
  EXPECT_EQ(second->version(), first->version() + 1);
  EXPECT_EQ(second->variables(0).SerializeAsString(), first->variables(0).SerializeAsString());
  EXPECT_EQ(second->variables_size(), 2);
  EXPECT_EQ(first->variables_size(), 1) << "who has it goes on with it";
  EXPECT_EQ(catalog.routed(), second);
  EXPECT_EQ(catalog.routing().version(), 0u) << "workers are told later";
  catalog.UseRouting();
  EXPECT_EQ(catalog.routing().version(), second->version());
}

// Nothing is taken out of a catalog: with it the job could neither take checkpoints nor recover.
TEST(Catalog, APlacementOnNoServerIsRefusedOnceThereAreServers) {
  const PlacementFunction function = [](const PlacementRequest& request) {
    return request.name == "nowhere" ? 7u : 1u;
  };
  Catalog catalog{Placement(function)};
  MU_ASSERT_OK(catalog.AddVariable(Variable("first")));
  MU_ASSERT_OK(catalog.Route(CoordinatorEpoch(1), Generation(1), Servers(2)));
  const auto refused = StatusIs(absl::StatusCode::kInvalidArgument,
                                HasSubstr("server 7 for partition 0 of 'nowhere'"));
  EXPECT_THAT(catalog.AddVariable(Variable("nowhere")), refused);
  pb::TableProto table;
  table.set_name("nowhere");
  table.set_rows(10);
  table.set_dim(1);
  table.set_partitions(2);
  EXPECT_THAT(catalog.AddTable(table), refused);
  EXPECT_EQ(catalog.parameters(), 1u);
  table.set_name("rows");
  MU_ASSERT_OK_AND_ASSIGN(const auto added, catalog.AddTable(table));
  EXPECT_EQ(added.id(), 0u);
  MU_ASSERT_OK_AND_ASSIGN(const auto second, catalog.AddVariable(Variable("second")));
  EXPECT_EQ(second.id(), 1u);
  MU_ASSERT_OK_AND_ASSIGN(const auto routing,
                          catalog.Route(CoordinatorEpoch(1), Generation(2), Servers(2)));
  EXPECT_THAT(routing->variables(1).placement(), ElementsAre(1u));
  EXPECT_THAT(routing->tables(0).placement(), ElementsAre(1u, 1u));
}

// They are not known yet, and nothing runs.
TEST(Catalog, APlacementOnNoServerIsToldWhenServersAreThere) {
  Catalog catalog{Placement(PlacementFunction([](const PlacementRequest&) { return 7u; }))};
  MU_ASSERT_OK(catalog.AddVariable(Variable("a")));
  EXPECT_THAT(catalog.Route(CoordinatorEpoch(1), Generation(1), Servers(2)),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("chose server 7")));
}

TEST(CheckpointManifest, NamesEveryDifference) {
  pb::RoutingProto routing;
  *routing.add_variables() = Variable("kept");
  *routing.add_variables() = Variable("reshaped", {2, 3});
  *routing.add_variables() = Variable("new");
  pb::CheckpointProto manifest;
  *manifest.add_variables() = Variable("kept");
  *manifest.add_variables() = Variable("reshaped", {2, 4});
  *manifest.add_variables() = Variable("old");
  EXPECT_THAT(
      CheckFits(manifest, routing),
      StatusIs(absl::StatusCode::kInvalidArgument,
               AllOf(HasSubstr("3 differences"), HasSubstr("'new' is not in the checkpoint"),
                     HasSubstr("'old' of the checkpoint is not in the job"), HasSubstr("[2, 4]"))));
  *manifest.mutable_variables() = routing.variables();
  MU_EXPECT_OK(CheckFits(manifest, routing));
}

TEST(CheckpointManifest, SlotsMustBeThoseOfTheJob) {
  pb::RoutingProto routing;
  *routing.add_variables() = Variable("a");
  pb::CheckpointProto manifest;
  *manifest.mutable_variables() = routing.variables();
  pb::OptimizerProto& saved = *manifest.mutable_variables(0)->mutable_optimizer();
  pb::OptimizerProto& wanted = *routing.mutable_variables(0)->mutable_optimizer();
  saved.mutable_sgd()->set_learning_rate(1);
  wanted.mutable_sgd()->set_learning_rate(2);
  MU_EXPECT_OK(CheckFits(manifest, routing));
  wanted.mutable_sgd()->set_momentum(0.5f);
  EXPECT_THAT(CheckFits(manifest, routing),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("sgd with slots momentum in the job and variable")));
  saved.mutable_adam();
  EXPECT_THAT(CheckFits(manifest, routing), HasCode(absl::StatusCode::kInvalidArgument));
  // What is not trained any more needs none; what is to be trained needs its own.
  wanted.Clear();
  MU_EXPECT_OK(CheckFits(manifest, routing));
  wanted.mutable_adagrad();
  saved.Clear();
  EXPECT_THAT(CheckFits(manifest, routing), HasCode(absl::StatusCode::kInvalidArgument));
}

// A server would find it out later, from the shape of one of its parts.
TEST(CheckpointManifest, PartitionsMustBeThoseOfTheJob) {
  pb::RoutingProto routing;
  *routing.add_variables() = Variable("a", {8, 2});
  pb::CheckpointProto manifest;
  *manifest.mutable_variables() = routing.variables();
  for (const int64_t start : {0, 3, 6}) manifest.mutable_variables(0)->add_partition_starts(start);
  EXPECT_THAT(CheckFits(manifest, routing),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("'a' has 1 partitions in the job and 3 in the checkpoint, and "
                                 "needs the partitioner with which it was saved")));
  routing.mutable_variables(0)->mutable_partitioner()->set_fixed_shards(3);
  MU_EXPECT_OK(CheckFits(manifest, routing));
  routing.mutable_variables(0)->mutable_partitioner()->set_fixed_shards(4);
  EXPECT_THAT(CheckFits(manifest, routing), HasCode(absl::StatusCode::kInvalidArgument));
  // What is placed already has its partitions.
  *routing.mutable_variables(0)->mutable_partition_starts() =
      manifest.variables(0).partition_starts();
  MU_EXPECT_OK(CheckFits(manifest, routing));
}

TEST(CheckpointManifest, ADamagedOneIsRefusedByName) {
  MU_ASSERT_OK_AND_ASSIGN(TempDirectory directory, TempDirectory::Create("manifest"));
  EXPECT_THAT(ReadManifest(directory.path()), HasCode(absl::StatusCode::kNotFound));
  pb::CheckpointProto manifest;
  manifest.set_format_version(kCheckpointFormat);
  manifest.set_steps(12);
  *manifest.add_variables() = Variable("a");
  MU_ASSERT_OK(WriteManifest(directory.path(), manifest));
  MU_ASSERT_OK_AND_ASSIGN(const auto read, ReadManifest(directory.path()));
  pb::CheckpointProto lacking = manifest;
  lacking.add_files()->set_name("ps-0.safetensors");
  lacking.add_updates(1);
  lacking.add_updates(1);
  MU_ASSERT_OK(WriteManifest(directory.path(), lacking));
  EXPECT_THAT(ReadManifest(directory.path()),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("1 of 2 files")));
  EXPECT_EQ(read.SerializeAsString(), manifest.SerializeAsString());
  const std::string path = directory.path() + "/manifest.json";
  MU_ASSERT_OK_AND_ASSIGN(const std::string json, ReadFile(path));
  MU_ASSERT_OK(WriteFileAtomic(path, json.substr(0, json.size() / 2)));
  EXPECT_THAT(ReadManifest(directory.path()),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr(path)));
  for (const char* garbage : {"", "\n", "{}", "null"}) {
    MU_ASSERT_OK(WriteFileAtomic(path, garbage));
    EXPECT_THAT(ReadManifest(directory.path()),
                StatusIs(absl::StatusCode::kDataLoss, HasSubstr(path)))
        << garbage;
  }
  MU_ASSERT_OK(WriteFileAtomic(path, "{\"format_version\": 99}"));
  EXPECT_THAT(ReadManifest(directory.path()),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("99")));
}

TEST(CheckpointManifest, NoBitOfItCanChange) {
  MU_ASSERT_OK_AND_ASSIGN(TempDirectory directory, TempDirectory::Create("manifest"));
  pb::CheckpointProto manifest;
  manifest.set_format_version(kCheckpointFormat);
  manifest.set_steps(1234567);
  manifest.set_user_state("00000000");  // looks like a sum
  *manifest.add_variables() = Variable("a");
  MU_ASSERT_OK(WriteManifest(directory.path(), manifest));
  MU_ASSERT_OK_AND_ASSIGN(const auto read, ReadManifest(directory.path()));
  EXPECT_EQ(read.SerializeAsString(), manifest.SerializeAsString());
  const std::string path = directory.path() + "/manifest.json";
  MU_ASSERT_OK_AND_ASSIGN(std::string json, ReadFile(path));
  for (size_t i = 0; i < json.size(); ++i) {
    for (const char bit : {1, 4}) {
      json[i] ^= bit;
      MU_ASSERT_OK(WriteFileAtomic(path, json));
      const absl::Status status = ReadManifest(directory.path()).status();
      EXPECT_THAT(status, HasCode(absl::StatusCode::kDataLoss)) << json;
      // `checkpoints list` has one line for each.
      EXPECT_EQ(status.message().find('\n'), std::string::npos) << status;
      json[i] ^= bit;
    }
  }
  // What an earlier program wrote has none.
  json.replace(json.find(",\n \"manifest_crc32c"), std::string::npos, "}");
  MU_ASSERT_OK(WriteFileAtomic(path, json));
  MU_EXPECT_OK(ReadManifest(directory.path()).status());
}

TEST(JobEpoch, GrowsWithEveryClaim) {
  MU_ASSERT_OK_AND_ASSIGN(TempDirectory directory, TempDirectory::Create("epochs"));
  MU_ASSERT_OK_AND_ASSIGN(const CoordinatorEpoch first, ClaimEpoch(directory.path()));
  MU_ASSERT_OK_AND_ASSIGN(const CoordinatorEpoch second, ClaimEpoch(directory.path()));
  EXPECT_EQ(first.value(), 1u);
  EXPECT_EQ(second.value(), 2u);
}

}  // namespace
}  // namespace mu
