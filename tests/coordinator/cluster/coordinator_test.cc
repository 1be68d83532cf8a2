// The coordinator with a parameter server in one process, over the transport in memory: what a
// program reads, and what it continues from.
#include "coordinator/cluster/coordinator.h"

#include <sys/stat.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/base/error_kind.h"
#include "common/env/file.h"
#include "common/rpc/faults.h"
#include "coordinator/cluster/checkpoint_manifest.h"
#include "coordinator/core/deadlines.h"
#include "coordinator/frontend/ops.h"
#include "psserver/server.h"
#include "tests/coordinator/cluster/register_server.h"
#include "tests/testing/matchers.h"

namespace mu {
namespace {

using testing::HasCode;
using ::testing::HasSubstr;
using testing::StatusIs;

class CoordinatorTest : public ::testing::Test {
 protected:
  void SetUp() override {
    MU_ASSERT_OK(directory_);
    Coordinator::Options options;
    options.runtime.listen = "";
    options.runtime.telemetry = &telemetry_;
    options.runtime.job = JobId(9);
    options.runtime.epoch = CoordinatorEpoch(5);
    MU_ASSERT_OK_AND_ASSIGN(
        coordinator_, Coordinator::Create(
                          options, NewFaultyTransport(transport_, std::make_shared<FaultPlan>(1))));
    MethodTable methods;
    server_.RegisterMethods(&methods);
    const Handler pull = methods.Find("/muster.PsServer/Pull")->handler;
    methods.AddUnary("/muster.PsServer/Pull", RunOn::kOwnThread,
                     [this, pull](std::shared_ptr<ServerCall> call, Buffer request) {
                       ++pulls_;
                       if (refusals_ == 0) return pull(std::move(call), std::move(request));
                       --refusals_;
                       call->Finish(refusal_);
                     });
    MU_ASSERT_OK_AND_ASSIGN(listening_, transport_->Listen("", std::move(methods)));
    MU_ASSERT_OK(testing::RegisterServer(*transport_, *coordinator_, listening_->address()));
    MU_ASSERT_OK_AND_ASSIGN(variable_,
                            coordinator_->CreateVariable(
                                {.name = "w", .shape = {2}, .initializer = Constant{.value = 3}}));
  }
  ~CoordinatorTest() override {
    coordinator_.reset();
    listening_.reset();
  }
  std::string Parent() const { return directory_->path() + "/checkpoints"; }
  // Of another job, without servers.
  absl::StatusOr<std::unique_ptr<Coordinator>> Another() {
    Coordinator::Options options;
    options.runtime.listen = "";
    options.runtime.telemetry = &telemetry_;
    options.runtime.job = JobId(10);
    return Coordinator::Create(options,
                               NewFaultyTransport(transport_, std::make_shared<FaultPlan>(1)));
  }

  absl::StatusOr<TempDirectory> directory_ = TempDirectory::Create("muster-coordinator");
  Telemetry telemetry_;
  const std::shared_ptr<Transport> transport_ = NewMemoryTransport();
  PsServer server_{{.telemetry = &telemetry_}};
  std::unique_ptr<RpcServer> listening_;
  std::unique_ptr<Coordinator> coordinator_;
  Variable variable_;
  std::atomic<int> refusals_{0}, pulls_{0};
  absl::Status refusal_;
};

// Of a generation that ended while the request was on its way, say: the next try has the new one.
TEST_F(CoordinatorTest, AValueIsReadAgainWhenTheServersHaveMovedOn) {
  refusal_ = WithKind(absl::FailedPreconditionError("older"), pb::ERROR_STALE, pb::ROLE_PSSERVER);
  refusals_ = deadlines::kTries - 1;
  MU_ASSERT_OK_AND_ASSIGN(const Tensor value, coordinator_->Read(variable_));
  EXPECT_EQ(value.flat<float>()[1], 3);
  EXPECT_EQ(pulls_, deadlines::kTries);
}

TEST_F(CoordinatorTest, TriesEndAndWhatStaysIsNotTriedAgain) {
  refusal_ = WithKind(absl::FailedPreconditionError("older"), pb::ERROR_STALE, pb::ROLE_PSSERVER);
  refusals_ = 1000;
  EXPECT_THAT(coordinator_->Read(variable_), HasCode(absl::StatusCode::kFailedPrecondition));
  EXPECT_EQ(pulls_, deadlines::kTries);
  pulls_ = 0;
  refusal_ =
      WithKind(absl::InvalidArgumentError("no such thing"), pb::ERROR_USER, pb::ROLE_PSSERVER);
  EXPECT_THAT(coordinator_->Read(variable_), HasCode(absl::StatusCode::kInvalidArgument));
  EXPECT_EQ(pulls_, 1);
}

TEST_F(CoordinatorTest, RowsAreReadAndAssigned) {
  MU_ASSERT_OK_AND_ASSIGN(const Variable grid,
                          coordinator_->CreateVariable({.name = "grid", .shape = {5, 2}}));
  MU_ASSERT_OK_AND_ASSIGN(
      const EmbeddingTable table,
      coordinator_->CreateEmbeddingTable({.name = "items", .rows = 1000, .dim = 2}));
  const Tensor values = Tensor::Of<float>({2, 2}, {1, 2, 3, 4});
  MU_ASSERT_OK(coordinator_->AssignRows(grid, {4, 1}, values));
  MU_ASSERT_OK_AND_ASSIGN(const Tensor rows, coordinator_->ReadRows(grid, 1, 4));
  EXPECT_EQ(rows.shape(), Shape({4, 2}));
  EXPECT_THAT(rows.flat<float>(), ::testing::ElementsAre(3, 4, 0, 0, 0, 0, 1, 2));
  MU_ASSERT_OK_AND_ASSIGN(const Tensor none, coordinator_->ReadRows(grid, 5, 0));
  EXPECT_EQ(none.elements(), 0);
  for (const auto& [first, count] :
       std::vector<std::pair<int64_t, int64_t>>{{-1, 1}, {5, 1}, {0, 6}, {1, -1}}) {
    EXPECT_THAT(coordinator_->ReadRows(grid, first, count), HasCode(absl::StatusCode::kOutOfRange));
  }
  EXPECT_THAT(coordinator_->ReadRows(Variable(), 0, 0),
              HasCode(absl::StatusCode::kInvalidArgument));

  MU_ASSERT_OK(coordinator_->AssignRows(table, {999, 7}, values));
  MU_EXPECT_OK(coordinator_->AssignRows(table, {}, Tensor(kFloat32, Shape{0, 2})));
  EXPECT_THAT(coordinator_->AssignRows(table, {1000}, Tensor::Of<float>({1, 2}, {1, 1})),
              HasCode(absl::StatusCode::kOutOfRange));
  EXPECT_THAT(coordinator_->AssignRows(EmbeddingTable(), {1}, values),
              HasCode(absl::StatusCode::kInvalidArgument));
  std::map<int64_t, float> found;
  const auto take = [&](const Coordinator::TableRows& piece) {
    EXPECT_EQ(piece.values.shape(), Shape({static_cast<int64_t>(piece.ids.size()), 2}));
    for (size_t i = 0; i < piece.ids.size(); ++i)
      found[piece.ids[i]] = piece.values.flat<float>()[2 * i + 1];
    return absl::OkStatus();
  };
  MU_ASSERT_OK(coordinator_->ReadTable(table, take, 1));
  EXPECT_THAT(found, ::testing::ElementsAre(std::pair<const int64_t, float>(7, 4.0f),
                                            std::pair<const int64_t, float>(999, 2.0f)));
  EXPECT_THAT(
      coordinator_->ReadTable(
          table, [](const Coordinator::TableRows&) { return absl::AbortedError("enough"); }),
      HasCode(absl::StatusCode::kAborted));
  EXPECT_THAT(coordinator_->ReadTable(EmbeddingTable(), take),
              HasCode(absl::StatusCode::kInvalidArgument));
  const std::map<int64_t, float> one_by_one = std::exchange(found, {});
  MU_EXPECT_OK(coordinator_->ReadTable(table, take));
  EXPECT_EQ(found, one_by_one);
}

// None aborts.
TEST_F(CoordinatorTest, HandlesThatAreEmptyOrAnotherCoordinatorsAreRefused) {
  MU_ASSERT_OK_AND_ASSIGN(const auto another, Another());
  MU_ASSERT_OK_AND_ASSIGN(const Dataset others,
                          another->CreateDataset(Csv({"others.csv"}).Id("id", 0, 0).Batch(1)));
  MU_ASSERT_OK_AND_ASSIGN(const Dataset own,
                          coordinator_->CreateDataset(Csv({"own.csv"}).Id("id", 0, 0).Batch(1)));
  ASSERT_EQ(own.proto().id(), others.proto().id()) << "it would be taken for the own one";
  MU_ASSERT_OK_AND_ASSIGN(const Function reads,
                          coordinator_->DefineFunction("reads", [&](FunctionBuilder& f) {
                            f.Return("id", f.NextBatch(own)["id"]);
                          }));
  MU_EXPECT_OK(coordinator_->CheckReads(reads, own));
  for (const Dataset& data : {Dataset(), others}) {
    const auto refused = StatusIs(absl::StatusCode::kInvalidArgument,
                                  HasSubstr(data.valid() ? "not created by this" : "is empty"));
    EXPECT_THAT(coordinator_->CheckReads(reads, data), refused);
    EXPECT_THAT(coordinator_->BatchesInEpoch(data).status(), refused);
    EXPECT_THAT(coordinator_->BatchesByLease(data).status(), refused);
    EXPECT_THAT(coordinator_->BatchesOfLeases(data, 0).status(), refused);
    EXPECT_THAT(coordinator_->StartEpoch(data, 0), refused);
    EXPECT_THAT(coordinator_->ProgressOf(data).status(), refused);
    EXPECT_THAT(coordinator_->StepsTaken(data).status(), refused);
  }
  EXPECT_FALSE(Function().valid());
  EXPECT_THAT(
      coordinator_->CheckReads(Function(), own),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("not defined by this coordinator")));
}

// The other coordinator has created variables and tables with the ids of this one's, but their rows
// have fewer bytes: what was read would be written behind them. Some have the same names as well.
TEST_F(CoordinatorTest, VariablesAndTablesOfAnotherCoordinatorAreRefused) {
  MU_ASSERT_OK_AND_ASSIGN(const Variable grid,
                          coordinator_->CreateVariable({.name = "grid", .shape = {2, 4}}));
  MU_ASSERT_OK_AND_ASSIGN(
      const EmbeddingTable items,
      coordinator_->CreateEmbeddingTable({.name = "items", .rows = 100, .dim = 2}));
  MU_ASSERT_OK_AND_ASSIGN(const EmbeddingTable wide, coordinator_->CreateEmbeddingTable(
                                                         {.name = "wide", .rows = 100, .dim = 4}));
  MU_ASSERT_OK_AND_ASSIGN(const auto another, Another());
  std::vector<Variable> variables(2);
  MU_ASSERT_OK_AND_ASSIGN(variables[0], another->CreateVariable({.name = "w", .shape = {1}}));
  MU_ASSERT_OK_AND_ASSIGN(variables[1], another->CreateVariable({.name = "v", .shape = {1}}));
  std::vector<EmbeddingTable> tables(2);
  MU_ASSERT_OK_AND_ASSIGN(tables[0],
                          another->CreateEmbeddingTable({.name = "items", .rows = 100, .dim = 1}));
  MU_ASSERT_OK_AND_ASSIGN(tables[1],
                          another->CreateEmbeddingTable({.name = "narrow", .rows = 100, .dim = 1}));
  ASSERT_EQ(variables[0].proto().id(), variable_.proto().id());
  ASSERT_EQ(variables[1].proto().id(), grid.proto().id());
  ASSERT_EQ(tables[0].proto().id(), items.proto().id());
  ASSERT_EQ(tables[1].proto().id(), wide.proto().id());

  for (const Variable& variable : variables) {
    const auto refused = StatusIs(
        absl::StatusCode::kInvalidArgument,
        HasSubstr("variable '" + variable.name() +
                  "' was not created by this coordinator; use what its CreateVariable returned"));
    EXPECT_THAT(coordinator_->Read(variable).status(), refused);
    EXPECT_THAT(coordinator_->ReadRows(variable, 0, 1).status(), refused);
    EXPECT_THAT(coordinator_->ReadRows(variable, 0, 0).status(), refused);
    EXPECT_THAT(coordinator_->Assign(variable, Tensor::Of<float>({1}, {8})), refused);
    EXPECT_THAT(coordinator_->AssignRows(variable, {0}, Tensor::Of<float>({1}, {9})), refused);
    EXPECT_THAT(coordinator_->AssignRows(variable, {}, Tensor()), refused);
  }
  for (const EmbeddingTable& table : tables) {
    const auto refused = StatusIs(absl::StatusCode::kInvalidArgument,
                                  HasSubstr("table '" + table.name() +
                                            "' was not created by this coordinator; use what its "
                                            "CreateEmbeddingTable returned"));
    const auto dim = static_cast<int64_t>(table.proto().dim());
    const std::vector<float> row(table.proto().dim(), 5);
    EXPECT_THAT(coordinator_->ReadRows(table, {1}).status(), refused);
    EXPECT_THAT(coordinator_->AssignRows(table, {1}, Tensor::Of<float>(Shape({1, dim}), row)),
                refused);
    EXPECT_THAT(coordinator_->AssignRows(table, {}, Tensor()), refused);
    EXPECT_THAT(coordinator_->ReadTable(
                    table, [](const Coordinator::TableRows&) { return absl::OkStatus(); }),
                refused);
  }

  MU_ASSERT_OK_AND_ASSIGN(const Tensor value, coordinator_->Read(variable_));
  EXPECT_THAT(value.flat<float>(), ::testing::ElementsAre(3, 3));
  MU_ASSERT_OK_AND_ASSIGN(const Tensor zeros, coordinator_->ReadRows(grid, 0, 2));
  EXPECT_THAT(zeros.flat<float>(), ::testing::Each(0));
  for (const EmbeddingTable& table : {items, wide}) {
    MU_EXPECT_OK(coordinator_->ReadTable(table, [](const Coordinator::TableRows&) {
      return absl::InternalError("a row was created");
    }));
  }
}

// The error names the line. A handle that only looks like one of this coordinator's does no harm
// here: the function names the own one.
TEST_F(CoordinatorTest, FunctionsThatUseVariablesOrTablesOfAnotherCoordinatorAreRefused) {
  MU_ASSERT_OK(coordinator_->CreateEmbeddingTable({.name = "items", .rows = 100, .dim = 2}));
  MU_ASSERT_OK_AND_ASSIGN(const auto another, Another());
  MU_ASSERT_OK_AND_ASSIGN(const Variable v, another->CreateVariable({.name = "v", .shape = {2}}));
  MU_ASSERT_OK_AND_ASSIGN(const Variable longer,
                          another->CreateVariable({.name = "w", .shape = {3}}));
  MU_ASSERT_OK_AND_ASSIGN(const EmbeddingTable narrow,
                          another->CreateEmbeddingTable({.name = "narrow", .rows = 100, .dim = 1}));
  const auto expect = [&](const std::string& what,
                          const std::function<void(FunctionBuilder&)>& build) {
    const absl::Status status = coordinator_->DefineFunction("uses", build).status();
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument,
                                 HasSubstr(what + " was not created by this coordinator")));
    EXPECT_THAT(std::string(status.message()), HasSubstr("coordinator_test.cc:"));
  };
  expect("variable 'v'", [&](FunctionBuilder& f) { f.Return("v", mu::Read(v)); });
  expect("variable 'v'", [&](FunctionBuilder&) {
    AssignAdd(v, ConstantTensor(Tensor::Of<float>({2}, {1, 1})));
  });
  expect("variable 'w'", [&](FunctionBuilder& f) { f.Return("w", mu::Read(longer)); });
  expect("table 'narrow'", [&](FunctionBuilder& f) {
    f.Return("row", EmbeddingLookup(narrow, ConstantTensor(Tensor::Of<int64_t>({1}, {1}))));
  });
  MU_EXPECT_OK(coordinator_->DefineFunction(
      "uses", [&](FunctionBuilder& f) { f.Return("w", mu::Read(variable_)); }));
}

TEST_F(CoordinatorTest, VariablesSaysWhereEverythingIsAndWhatWasAskedOfIt) {
  MU_ASSERT_OK(coordinator_->CreateEmbeddingTable({.name = "items", .rows = 1000, .dim = 2}));
  MU_ASSERT_OK(coordinator_->Read(variable_));
  MU_ASSERT_OK(coordinator_->Assign(variable_, Tensor::Of<float>({2}, {1, 2})));
  MU_ASSERT_OK_AND_ASSIGN(const std::vector<ParameterInfo> infos, coordinator_->Variables());
  ASSERT_EQ(infos.size(), 2u);
  EXPECT_EQ(infos[0].name, "w");
  EXPECT_FALSE(infos[0].is_table);
  EXPECT_EQ(infos[0].shape, Shape({2}));
  ASSERT_EQ(infos[0].partitions.size(), 1u);
  EXPECT_EQ(infos[0].partitions[0].server, 0u);
  EXPECT_EQ(infos[0].Total().reads, 1u);
  EXPECT_EQ(infos[0].Total().read_bytes, 8u);
  EXPECT_EQ(infos[0].Total().updates, 1u);
  EXPECT_TRUE(infos[1].is_table);
  EXPECT_EQ(infos[1].Total().rows, 0u);
  EXPECT_EQ(infos[1].shape, Shape({1000, 2}));
  EXPECT_EQ(infos[1].partitions.size(), 64u);
  EXPECT_EQ(LoadOf(infos).at("w"), 16) << "read, and assigned";
  EXPECT_EQ(LoadByServer(infos).at(0).reads, 1u);
  const std::string text = ParametersTable(infos);
  EXPECT_THAT(text, HasSubstr("\nitems"));
  EXPECT_THAT(text, HasSubstr("\nserver 0"));
}

// Epochs before `since` are those of coordinators of another run in the same directory.
TEST_F(CoordinatorTest, ARunContinuesFromTheCheckpointsOfItsOwnCoordinators) {
  coordinator_->EnableRecovery(Parent());
  coordinator_->StartFresh();
  MU_ASSERT_OK(coordinator_->Checkpoint({}));
  const auto restore = [&](uint64_t since) {
    return coordinator_->Restore(CoordinatorEpoch(since)).status();
  };
  EXPECT_THAT(restore(6), StatusIs(absl::StatusCode::kNotFound, HasSubstr("of this run")));
  MU_EXPECT_OK(restore(5)) << "the run's first coordinator took it";
}

// What was read by then is another checkpoint's manifest.
TEST_F(CoordinatorTest, AGroupReadsTheCheckpointThatTookThePlaceOfTheOneBefore) {
  const std::string best = directory_->path() + "/best";
  for (const char* number : {".1", ".2"}) MU_ASSERT_OK(MakeDirectories(best + number));
  MU_ASSERT_OK(WriteFileAtomic(best + ".2/manifest.json", "no manifest"));
  const std::string read_slowly = best + ".1/manifest.json";
  ASSERT_EQ(::mkfifo(read_slowly.c_str(), 0600), 0);
  std::filesystem::create_symlink("best.1", best);
  absl::Status status;
  std::thread creates([&] { status = coordinator_->CreateGroup({.checkpoint = best}).status(); });
  {
    std::ofstream manifest(read_slowly);  // waits until it is being read
    std::filesystem::create_symlink("best.2", best + ".link");
    std::filesystem::rename(best + ".link", best);
    manifest << "no manifest either";
  }
  creates.join();
  // Errors name the file: here that of the checkpoint which the group would read.
  EXPECT_THAT(status,
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("best.2/manifest.json is damaged")));
}

}  // namespace
}  // namespace mu
