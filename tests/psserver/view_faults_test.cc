// Loads of views that wait, fail, are dropped or have no room, and what goes on meanwhile.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstring>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "common/base/cannot_read.h"
#include "common/env/file.h"
#include "psserver/server.h"
#include "tests/psserver/frames.h"
#include "tests/psserver/model.h"
#include "tests/psserver/stop.h"
#include "tests/testing/matchers.h"

namespace mu {
namespace {

using ::mu::testing::Bytes;
using ::mu::testing::CountingPush;
using ::mu::testing::Frame;
using ::mu::testing::HasCode;
using ::mu::testing::PushAndWait;
using ::mu::testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

// One server, with a checkpoint of "steps" = 1.
class ViewFaultsTest : public ::testing::Test {
 protected:
  ViewFaultsTest() : server_(Options()), routing_(testing::SmallModel(1)) {
    auto directory = TempDirectory::Create("muster_view_faults_test");
    MU_CHECK(directory.ok());
    directory_ = std::make_unique<TempDirectory>(*std::move(directory));
    context_.set_job(1);
    context_.set_epoch(1);
    context_.set_generation(1);
    MU_CHECK(Configure(&server_).ok());
    MU_CHECK(Push(1).ok());
    file_ = Save("ps.safetensors")->file();
  }

  PsServerOptions Options() {
    return {.telemetry = &telemetry_, .at = [this](absl::string_view m) { stop_.At(m); }};
  }
  absl::Status Configure(PsServer* server) {
    pb::ConfigurePsRequest request;
    *request.mutable_context() = context_;
    *request.mutable_routing() = routing_;
    return server->Configure(request).status();
  }
  absl::Status Push(uint32_t step) {
    return PushAndWait(&server_, CountingPush(context_, 1, step)).status();
  }
  absl::StatusOr<pb::SaveReply> Save(const std::string& file) {
    pb::SaveRequest request;
    *request.mutable_context() = context_;
    request.set_directory(directory_->path());
    request.set_file(file);
    return server_.Save(request);
  }
  pb::LoadViewRequest Request(uint64_t view) {
    pb::LoadViewRequest request;
    *request.mutable_context() = context_;
    request.set_view(view);
    request.set_directory(directory_->path());
    *request.add_files() = file_;
    return request;
  }
  absl::Status Load(uint64_t view) { return server_.LoadView(Request(view)).status(); }
  absl::Status Drop(uint64_t view) {
    pb::DropViewRequest request;
    *request.mutable_context() = context_;
    request.set_view(view);
    return server_.DropView(request).status();
  }
  absl::StatusOr<int64_t> Steps(uint64_t view, std::vector<uint32_t> more = {}) {
    pb::PullRequest request;
    *request.mutable_context() = context_;
    request.set_view(view);
    request.add_variables()->set_variable(2);
    for (const uint32_t variable : more) request.add_variables()->set_variable(variable);
    auto reply = server_.Pull(Frame(request, ""));
    if (!reply.ok()) return reply.status();
    pb::PullReply header;
    const auto payload = ParseFrame(*reply, &header);
    if (!payload.ok()) return payload.status();
    int64_t steps = -1;
    std::memcpy(&steps, payload->data(), sizeof(steps));
    return steps;
  }
  uint64_t ViewBytes() { return server_.GetStats({})->view_bytes(); }

  std::unique_ptr<TempDirectory> directory_;
  Telemetry telemetry_;
  testing::Stop stop_;
  PsServer server_;
  pb::RoutingProto routing_;
  pb::RequestContext context_;
  pb::CheckpointFileProto file_;
};

TEST_F(ViewFaultsTest, NothingWaitsForALoadButWhoAsksForTheSameView) {
  stop_.Hold("view");
  absl::Status first, second;
  std::thread loads([&] { first = Load(4); });
  stop_.AwaitCalls("view", 1);
  std::thread waits([&] { second = Load(4); });

  MU_EXPECT_OK(Push(2));
  EXPECT_THAT(Steps(0), testing::IsOk());
  MU_EXPECT_OK(Save("meanwhile").status());
  pb::RestoreRequest restore;
  context_.set_generation(2);
  *restore.mutable_context() = context_;
  MU_EXPECT_OK(server_.Restore(restore).status());
  MU_EXPECT_OK(Configure(&server_));
  EXPECT_EQ(KindOf(Steps(4).status()), pb::ERROR_NOT_INSTALLED);
  EXPECT_EQ(server_
                .LoadView([&] {
                  auto other = Request(4);
                  other.mutable_files(0)->set_crc32c(other.files(0).crc32c() + 1);
                  return other;
                }())
                .status()
                .code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(server_.progress().busy());

  stop_.Release();
  loads.join();
  waits.join();
  MU_EXPECT_OK(first);
  MU_EXPECT_OK(second);
  EXPECT_EQ(stop_.calls("view"), 1) << "one has loaded it";
  EXPECT_FALSE(server_.progress().busy());
  EXPECT_THAT(Steps(0), testing::IsOk());
  EXPECT_EQ(*Steps(0), 0);
  EXPECT_EQ(*Steps(4), 1);
}

TEST_F(ViewFaultsTest, WhatIsDroppedWhileItIsLoadedIsNotKept) {
  stop_.Hold("view");
  absl::Status first, second;
  std::thread loads([&] { first = Load(4); });
  stop_.AwaitCalls("view", 1);
  std::thread waits([&] { second = Load(4); });
  MU_EXPECT_OK(Drop(4));
  waits.join();  // it does not wait for the disk any more
  EXPECT_EQ(KindOf(second), pb::ERROR_STALE);
  stop_.Release();
  loads.join();
  EXPECT_THAT(first, HasCode(absl::StatusCode::kFailedPrecondition));
  EXPECT_EQ(KindOf(first), pb::ERROR_STALE);
  EXPECT_EQ(ViewBytes(), 0u);
  EXPECT_EQ(KindOf(Steps(4).status()), pb::ERROR_NOT_INSTALLED);
}

TEST_F(ViewFaultsTest, APullUnderWayKeepsWhatItReads) {
  MU_ASSERT_OK(Load(4));
  stop_.Hold("view pull");
  absl::StatusOr<int64_t> read = absl::InternalError("no answer");
  std::thread pulls([&] { read = Steps(4); });
  stop_.AwaitCalls("view pull", 1);
  MU_EXPECT_OK(Drop(4));
  EXPECT_EQ(ViewBytes(), 0u);
  stop_.Release();
  pulls.join();
  MU_ASSERT_OK(read);
  EXPECT_EQ(*read, 1);
  EXPECT_EQ(KindOf(Steps(4).status()), pb::ERROR_NOT_INSTALLED);
}

// Whatever the request says: who reads a view cannot make it grow.
TEST_F(ViewFaultsTest, PullsCreateNoRows) {
  MU_ASSERT_OK(Load(4));
  const uint64_t bytes = ViewBytes();
  pb::PullRequest request;
  *request.mutable_context() = context_;
  request.set_view(4);
  auto* keys = request.add_tables();
  keys->set_table(100);
  keys->add_partitions(3);
  keys->add_counts(1);
  MU_EXPECT_OK(server_.Pull(Frame(request, Bytes<int64_t>({3}))));
  EXPECT_EQ(ViewBytes(), bytes);
  EXPECT_EQ(server_.GetStats({})->rows(), 0u);
}

// A pull holds back no restore, as those of the state do.
TEST_F(ViewFaultsTest, ARestoreDoesNotWaitForPulls) {
  MU_ASSERT_OK(Load(4));
  stop_.Hold("view pull");
  absl::StatusOr<int64_t> read = absl::InternalError("no answer");
  std::thread pulls([&] { read = Steps(4); });
  stop_.AwaitCalls("view pull", 1);
  pb::RestoreRequest restore;
  *restore.mutable_context() = context_;
  restore.mutable_context()->set_generation(2);
  MU_EXPECT_OK(server_.Restore(restore).status());
  stop_.Release();
  pulls.join();
  MU_ASSERT_OK(read);
  EXPECT_EQ(*read, 1);
}

TEST_F(ViewFaultsTest, FurtherPartitionsAreLoadedWhenItIsAskedForAgain) {
  MU_ASSERT_OK(Load(4));
  const uint64_t bytes = ViewBytes();
  pb::VariableProto* added = routing_.add_variables();
  *added = routing_.variables(4);  // float [3]
  added->set_id(50);
  added->set_name("added");
  added->mutable_initializer()->mutable_constant()->set_value(2.5f);
  MU_ASSERT_OK(Configure(&server_));
  EXPECT_EQ(*Steps(4), 1) << "what it has is read on";
  const absl::Status lacks = Steps(4, {50}).status();
  EXPECT_THAT(lacks, StatusIs(absl::StatusCode::kFailedPrecondition,
                              AllOf(HasSubstr("view 4"), HasSubstr("LoadView"))));
  EXPECT_EQ(KindOf(lacks), pb::ERROR_NOT_INSTALLED);
  EXPECT_THAT(Steps(4, {51}), HasCode(absl::StatusCode::kInvalidArgument))
      << "the server has no such variable";
  MU_ASSERT_OK(Load(4));
  EXPECT_EQ(ViewBytes(), bytes + 3 * sizeof(float)) << "the former values are gone";
  pb::PullRequest request;
  *request.mutable_context() = context_;
  request.set_view(4);
  request.add_variables()->set_variable(50);
  MU_ASSERT_OK_AND_ASSIGN(const Buffer reply, server_.Pull(Frame(request, "")));
  pb::PullReply header;
  MU_ASSERT_OK_AND_ASSIGN(const auto payload, ParseFrame(reply, &header));
  EXPECT_EQ(std::string(payload.data(), 12), Bytes<float>({2.5f, 2.5f, 2.5f}));
  EXPECT_EQ(*Steps(4, {50}), 1);
}

// Each by what it asks for: variables, rows of tables, products.
TEST_F(ViewFaultsTest, WhateverIsAskedForMustBeInTheView) {
  MU_ASSERT_OK(Load(4));
  pb::VariableProto* matrix = routing_.add_variables();
  *matrix = routing_.variables(0);
  matrix->set_id(50);
  matrix->set_name("matrix");
  pb::TableProto* table = routing_.add_tables();
  *table = routing_.tables(0);
  table->set_id(150);
  table->set_name("more");
  MU_ASSERT_OK(Configure(&server_));
  pb::PullRequest product;
  *product.mutable_context() = context_;
  product.set_view(4);
  auto* key = product.add_products();
  key->set_variable(50);
  key->set_rows(1);
  pb::PullRequest rows;
  *rows.mutable_context() = context_;
  rows.set_view(4);
  auto* keys = rows.add_tables();
  keys->set_table(150);
  keys->add_partitions(3);
  keys->add_counts(1);
  const auto pulls = [&] {
    return std::vector<absl::Status>{
        server_.Pull(Frame(product, Bytes<float>({1, 1, 1, 1, 1, 0}))).status(),
        server_.Pull(Frame(rows, Bytes<int64_t>({3}))).status()};
  };
  for (const absl::Status& status : pulls()) EXPECT_EQ(KindOf(status), pb::ERROR_NOT_INSTALLED);
  MU_ASSERT_OK(Load(4));
  for (const absl::Status& status : pulls()) MU_EXPECT_OK(status);
}

TEST_F(ViewFaultsTest, WhatIsConfiguredWhileItIsLoadedIsLoadedAsWell) {
  stop_.Hold("view");
  absl::Status loaded;
  std::thread loads([&] { loaded = Load(4); });
  stop_.AwaitCalls("view", 1);
  pb::VariableProto* added = routing_.add_variables();
  *added = routing_.variables(4);
  added->set_id(50);
  added->set_name("added");
  MU_ASSERT_OK(Configure(&server_));
  stop_.Release();
  loads.join();
  MU_ASSERT_OK(loaded);
  EXPECT_EQ(stop_.calls("view"), 2);
  MU_EXPECT_OK(Steps(4, {50}));
}

TEST_F(ViewFaultsTest, BadFilesAreNamedAndNothingIsKept) {
  const std::string path = JoinPath(directory_->path(), file_.name());
  const std::string hidden = path + ".hidden";
  ASSERT_EQ(std::rename(path.c_str(), hidden.c_str()), 0);
  const absl::Status missing = Load(4);
  EXPECT_TRUE(IsCannotRead(missing)) << missing;
  EXPECT_THAT(std::string(missing.message()), HasSubstr(file_.name()));
  EXPECT_EQ(DetailOf(missing)->role(), pb::ROLE_PSSERVER);
  ASSERT_EQ(std::rename(hidden.c_str(), path.c_str()), 0);

  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(static_cast<std::streamoff>(file_.bytes()) - 1);
  const char last = static_cast<char>(file.get());
  const auto write_last = [&](char byte) {
    file.seekp(static_cast<std::streamoff>(file_.bytes()) - 1);
    file.put(byte);
    file.flush();
  };
  write_last(static_cast<char>(last ^ 1));
  const absl::Status damaged = Load(4);
  EXPECT_THAT(damaged, StatusIs(absl::StatusCode::kDataLoss, HasSubstr(file_.name())));
  EXPECT_EQ(KindOf(damaged), pb::ERROR_MACHINE);
  EXPECT_EQ(ViewBytes(), 0u);
  EXPECT_EQ(KindOf(Steps(4).status()), pb::ERROR_NOT_INSTALLED);
  EXPECT_EQ(*Steps(0), 1) << "the state goes on";
  write_last(last);
  MU_EXPECT_OK(Load(4)) << "the same number, since nothing came of it";
  EXPECT_EQ(*Steps(4), 1);
}

TEST_F(ViewFaultsTest, NeedsRoomWithinTheServersMemory) {
  MU_ASSERT_OK(Load(4));
  const uint64_t state = server_.GetStats({})->value_bytes(), view = ViewBytes();
  ASSERT_LT(view, state) << "no slots";
  const auto load = [&](uint64_t most) {
    PsServerOptions options = Options();
    options.most_values = most;
    PsServer server(options);
    MU_EXPECT_OK(Configure(&server));
    return server.LoadView(Request(4)).status();
  };
  MU_EXPECT_OK(load(state + view));
  const absl::Status full = load(state + view - 1);
  EXPECT_THAT(full, StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("--memory_limit")));
  EXPECT_EQ(KindOf(full), pb::ERROR_USER);
}

TEST_F(ViewFaultsTest, GivesItsRoomToRows) {
  MU_ASSERT_OK(Load(4));
  PsServerOptions options = Options();
  options.most_values = server_.GetStats({})->value_bytes() + ViewBytes();
  pb::PullRequest row;
  *row.mutable_context() = context_;
  auto* keys = row.add_tables();
  keys->set_table(100);
  keys->add_partitions(3);
  keys->add_counts(1);
  PsServer server(options);
  MU_ASSERT_OK(Configure(&server));
  MU_ASSERT_OK(server.LoadView(Request(4)).status());
  const auto loaded = [&] { return server.GetStats({})->views(); };
  int pulls = 0;
  while (loaded() > 0 && pulls < 100)
    MU_ASSERT_OK(server.Pull(Frame(row, Bytes<int64_t>({3 + 64 * (pulls++ % 15)}))).status());
  EXPECT_GT(pulls, 1) << "up to the limit both are there";
  EXPECT_LT(pulls, 100);
  EXPECT_EQ(server.GetStats({})->view_bytes(), 0u);
  const absl::Status full = server.LoadView(Request(4)).status();
  EXPECT_THAT(full, StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("--memory_limit")));
  EXPECT_EQ(KindOf(full), pb::ERROR_USER);
}

}  // namespace
}  // namespace mu
