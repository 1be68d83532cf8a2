// Values that one call to a server cannot carry: what a program assigns and reads goes in pieces.
// The coordinator with a parameter server in one process, whose messages are small.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <map>
#include <memory>
#include <thread>
#include <vector>

#include "common/base/error_kind.h"
#include "common/base/mutex.h"
#include "common/env/file.h"
#include "common/rpc/faults.h"
#include "coordinator/cluster/coordinator.h"
#include "psserver/server.h"
#include "tests/coordinator/cluster/register_server.h"
#include "tests/testing/matchers.h"

namespace mu {
namespace {

using ::testing::AllOf;
using testing::HasCode;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::StatusIs;

constexpr int64_t kDim = 4, kInPiece = 50;  // rows
constexpr uint64_t kPiece = kInPiece * (kDim * sizeof(float) + sizeof(int64_t));
constexpr uint64_t kMessage = 2000;  // bytes: a piece and a header, not two pieces

// `count` rows of 1000, not in their order.
std::vector<int64_t> Ids(int64_t count) {
  std::vector<int64_t> ids;
  for (int64_t i = 0; i < count; ++i) ids.push_back(7 * i % 1000);
  return ids;
}

Tensor ValuesOf(const std::vector<int64_t>& ids) {
  Tensor values(kFloat32, Shape({static_cast<int64_t>(ids.size()), kDim}));
  for (int64_t i = 0; i < values.elements(); ++i)
    values.data<float>()[i] = static_cast<float>(10 * ids[i / kDim] + i % kDim);
  return values;
}

class ValuePiecesTest : public ::testing::Test {
 protected:
  struct Assigned {
    uint64_t place;
    std::vector<int64_t> rows;
  };

  void SetUp() override {
    MU_ASSERT_OK(directory_);
    Coordinator::Options options;
    options.runtime.listen = "";
    options.runtime.telemetry = &telemetry_;
    options.runtime.job = JobId(9);
    options.runtime.epoch = CoordinatorEpoch(5);
    options.piece_bytes = kPiece;
    options.runtime.timeout = absl::Minutes(10);  // the server sends no heartbeats
    MU_ASSERT_OK_AND_ASSIGN(
        coordinator_, Coordinator::Create(
                          options, NewFaultyTransport(transport_, std::make_shared<FaultPlan>(1))));
    MethodTable methods;
    server_.RegisterMethods(&methods);
    const auto refused = [this](std::atomic<int>* countdown, const auto& call) {
      if (*countdown == 0 || --*countdown > 0) return false;
      call->Finish(refusal_);
      return true;
    };
    const Handler pull = methods.Find("/muster.PsServer/Pull")->handler;
    methods.AddUnary("/muster.PsServer/Pull", RunOn::kOwnThread,
                     [this, pull, refused](std::shared_ptr<ServerCall> call, Buffer request) {
                       ++pulls_;
                       if (refused(&refuse_pull_, call)) return;
                       pull(std::move(call), std::move(request));
                     });
    const Handler assign = methods.Find("/muster.PsServer/Assign")->handler;
    methods.AddUnary("/muster.PsServer/Assign", RunOn::kOwnThread,
                     [this, assign, refused](std::shared_ptr<ServerCall> call, Buffer request) {
                       Note(request);
                       if (request.size() > kMessage)  // as gRPC does
                         return call->Finish(absl::ResourceExhaustedError("too large a message"));
                       if (refused(&refuse_assign_, call)) return;
                       assign(std::move(call), std::move(request));
                     });
    MU_ASSERT_OK_AND_ASSIGN(listening_, transport_->Listen("", std::move(methods)));
    MU_ASSERT_OK(testing::RegisterServer(*transport_, *coordinator_, listening_->address()));
    MU_ASSERT_OK_AND_ASSIGN(table_, coordinator_->CreateEmbeddingTable(
                                        {.name = "t", .rows = 1000, .dim = kDim, .partitions = 1}));
    MU_ASSERT_OK_AND_ASSIGN(
        grid_, coordinator_->CreateVariable(
                   {.name = "grid", .shape = {130, kDim}, .partitioner = FixedShards{2}}));
  }
  ~ValuePiecesTest() override {
    coordinator_.reset();
    listening_.reset();
  }

  void Note(const Buffer& request) {
    pb::AssignRequest parsed;
    EXPECT_TRUE(parsed.ParseFromArray(request.data(), static_cast<int>(request.size())));
    MutexLock lock(&mutex_);
    calls_.push_back({parsed.function(), {parsed.rows().begin(), parsed.rows().end()}});
  }
  std::vector<Assigned> Assigns() {
    MutexLock lock(&mutex_);
    return calls_;
  }
  Coordinator& c() { return *coordinator_; }
  absl::Status AssignTable(int64_t rows) {
    return c().AssignRows(table_, Ids(rows), ValuesOf(Ids(rows)));
  }
  // The first value of each row that exists.
  std::map<int64_t, float> Existing(uint32_t rows_in_piece) {
    std::map<int64_t, float> found;
    MU_EXPECT_OK(c().ReadTable(
        table_,
        [&](const Coordinator::TableRows& piece) {
          EXPECT_LE(piece.ids.size(), std::min<size_t>(kInPiece, rows_in_piece));
          for (size_t i = 0; i < piece.ids.size(); ++i)
            EXPECT_TRUE(found.emplace(piece.ids[i], piece.values.flat<float>()[i * kDim]).second);
          return absl::OkStatus();
        },
        rows_in_piece));
    return found;
  }
  static std::map<int64_t, float> Expected(int64_t rows) {
    std::map<int64_t, float> expected;
    for (const int64_t id : Ids(rows)) expected[id] = static_cast<float>(10 * id);
    return expected;
  }

  absl::StatusOr<TempDirectory> directory_ = TempDirectory::Create("muster-pieces");
  Telemetry telemetry_;
  PsServer server_{{.telemetry = &telemetry_, .most_reply_bytes = kMessage}};
  Mutex mutex_;
  std::vector<Assigned> calls_ ABSL_GUARDED_BY(mutex_);
  std::atomic<int> pulls_{0};
  // Which call, counted from now on, is refused; 0: none.
  std::atomic<int> refuse_pull_{0}, refuse_assign_{0};
  absl::Status refusal_;
  const std::shared_ptr<Transport> transport_ = NewMemoryTransport();
  std::unique_ptr<RpcServer> listening_;
  std::unique_ptr<Coordinator> coordinator_;
  EmbeddingTable table_;
  Variable grid_;
};

TEST_F(ValuePiecesTest, RowsOfATableAreAssignedAndRead) {
  MU_ASSERT_OK(AssignTable(230));
  const auto calls = Assigns();
  ASSERT_EQ(calls.size(), 5u);
  std::vector<int64_t> rows;
  for (size_t i = 0; i < calls.size(); ++i) {
    EXPECT_LE(calls[i].rows.size(), static_cast<size_t>(kInPiece));
    EXPECT_EQ(calls[i].place, calls[0].place + i) << "each has a place of its own";
    rows.insert(rows.end(), calls[i].rows.begin(), calls[i].rows.end());
  }
  EXPECT_EQ(rows, Ids(230));
  MU_ASSERT_OK_AND_ASSIGN(const Tensor read, c().ReadRows(table_, Ids(230)));
  EXPECT_EQ(read.flat<float>(), ValuesOf(Ids(230)).flat<float>());
  EXPECT_EQ(pulls_, 5);
  EXPECT_EQ(Existing(10'000), Expected(230)) << "no piece is larger than a call may be";
  EXPECT_EQ(Existing(7), Expected(230));
}

TEST_F(ValuePiecesTest, AVariableIsAssignedAndRead) {
  std::vector<int64_t> all(130);
  for (int64_t row = 0; row < 130; ++row) all[row] = row;
  MU_ASSERT_OK(c().Assign(grid_, ValuesOf(all)));
  const auto calls = Assigns();
  ASSERT_EQ(calls.size(), 4u) << "rows 50 to 99 are in two partitions";
  EXPECT_EQ(calls[1].place, calls[2].place);
  EXPECT_LT(calls[0].place, calls[1].place);
  EXPECT_LT(calls[2].place, calls[3].place);
  MU_ASSERT_OK_AND_ASSIGN(const Tensor read, c().Read(grid_));
  EXPECT_EQ(read.flat<float>(), ValuesOf(all).flat<float>());
  EXPECT_EQ(pulls_, 2) << "75 rows without their numbers fit";
  MU_ASSERT_OK_AND_ASSIGN(const Tensor rows, c().ReadRows(grid_, 3, 120));
  EXPECT_EQ(rows.flat<float>(), ValuesOf({all.begin() + 3, all.begin() + 123}).flat<float>());
  const std::vector<int64_t> backwards(all.rbegin(), all.rend());
  MU_ASSERT_OK(c().AssignRows(grid_, backwards, ValuesOf(all)));
  MU_ASSERT_OK_AND_ASSIGN(const Tensor reversed, c().Read(grid_));
  EXPECT_EQ(reversed.flat<float>(), ValuesOf(backwards).flat<float>());
}

TEST_F(ValuePiecesTest, AssignsAndReadsOtherTypesAndShapes) {
  const auto goes_through = [&](const char* name, const Tensor& value, size_t calls) {
    MU_ASSERT_OK_AND_ASSIGN(
        const Variable variable,
        c().CreateVariable({.name = name, .shape = value.shape(), .dtype = value.dtype()}));
    const size_t before = Assigns().size();
    MU_ASSERT_OK(c().Assign(variable, value)) << name;
    EXPECT_EQ(Assigns().size() - before, calls) << name;
    MU_ASSERT_OK_AND_ASSIGN(const Tensor read, c().Read(variable));
    EXPECT_EQ(read.ToProto().SerializeAsString(), value.ToProto().SerializeAsString()) << name;
  };
  goes_through("scalar", Tensor::Scalar<int64_t>(7), 1);
  Tensor counts(kInt64, Shape({300}));
  for (int64_t i = 0; i < 300; ++i) counts.data<int64_t>()[i] = i << 33;
  goes_through("counts", counts, 4);
  Tensor wide(kFloat32, Shape({1, 400}));
  std::fill_n(wide.data<float>(), 400, 3.0f);
  goes_through("wide_row", wide, 1);
  goes_through("one_piece", ValuesOf(Ids(75)), 1);
}

TEST_F(ValuePiecesTest, WhatDoesNotFitIsRefusedBeforeTheFirstPiece) {
  std::vector<int64_t> ids = Ids(230);
  Tensor values = ValuesOf(ids);
  const auto refused = [&](const absl::Status& status, absl::StatusCode code) {
    EXPECT_THAT(status, HasCode(code));
    EXPECT_TRUE(Assigns().empty());
  };
  const auto invalid = absl::StatusCode::kInvalidArgument;
  ids.back() = 1000;
  refused(c().AssignRows(table_, ids, values), absl::StatusCode::kOutOfRange);
  ids.back() = -1;
  refused(c().AssignRows(table_, ids, values), absl::StatusCode::kOutOfRange);
  ids.back() = ids.front();
  refused(c().AssignRows(table_, ids, values), invalid);
  refused(c().AssignRows(table_, Ids(231), values), invalid);
  refused(c().AssignRows(table_, Ids(230), Tensor(kInt32, values.shape())), invalid);
  values.data<float>()[values.elements() - 1] = std::nanf("");
  refused(c().AssignRows(table_, Ids(230), values), invalid);
  Tensor grid = ValuesOf(Ids(130));
  grid.data<float>()[grid.elements() - 1] = INFINITY;
  refused(c().Assign(grid_, grid), invalid);
  refused(c().Assign(grid_, ValuesOf(Ids(129))), invalid);
  refused(c().AssignRows(grid_, Ids(130), ValuesOf(Ids(130))), absl::StatusCode::kOutOfRange);
  EXPECT_TRUE(Existing(100).empty());
}

TEST_F(ValuePiecesTest, AnErrorSaysHowFarItCame) {
  refusal_ =
      WithKind(absl::ResourceExhaustedError("no more room"), pb::ERROR_USER, pb::ROLE_PSSERVER);
  refuse_assign_ = 3;
  const absl::Status status = AssignTable(230);
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kResourceExhausted,
                               AllOf(HasSubstr("of 230 rows for table 't' the first 100 were "
                                               "assigned, the next 50 perhaps"),
                                     HasSubstr("no more room"))));
  EXPECT_EQ(KindOf(status), pb::ERROR_USER);
  EXPECT_EQ(Assigns().size(), 3u) << "nothing comes after it";
  EXPECT_EQ(Existing(100), Expected(100));
  refuse_assign_ = 1;
  EXPECT_THAT(AssignTable(230),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       AllOf(HasSubstr("no more room"), Not(HasSubstr("of 230 rows")))));
  MU_EXPECT_OK(AssignTable(230));
  EXPECT_EQ(Existing(100), Expected(230));
}

TEST_F(ValuePiecesTest, APieceWhoseErrorPassesIsAssignedAgainInItsPlace) {
  refusal_ = WithKind(absl::FailedPreconditionError("older"), pb::ERROR_STALE, pb::ROLE_PSSERVER);
  refuse_assign_ = 3;
  MU_ASSERT_OK(AssignTable(230));
  const auto calls = Assigns();
  ASSERT_EQ(calls.size(), 6u);
  EXPECT_EQ(calls[2].place, calls[3].place);
  EXPECT_EQ(calls[2].rows, calls[3].rows);
  EXPECT_EQ(Existing(100), Expected(230));
}

// Of a generation that ended while they were read: those read before may have been rolled back.
TEST_F(ValuePiecesTest, AllPiecesAreReadAgainWhenTheServersHaveMovedOn) {
  MU_ASSERT_OK(AssignTable(150));
  refusal_ = WithKind(absl::FailedPreconditionError("older"), pb::ERROR_STALE, pb::ROLE_PSSERVER);
  refuse_pull_ = 2;
  MU_ASSERT_OK_AND_ASSIGN(const Tensor read, c().ReadRows(table_, Ids(150)));
  EXPECT_EQ(read.flat<float>(), ValuesOf(Ids(150)).flat<float>());
  EXPECT_EQ(pulls_, 2 + 3);
  pulls_ = 0;
  refuse_pull_ = 2;
  MU_EXPECT_OK(c().Read(grid_));
  EXPECT_EQ(pulls_, 2 + 2);
  pulls_ = 0;
  refuse_pull_ = 1;
  MU_EXPECT_OK(c().ReadRows(grid_, 0, 76));
  EXPECT_EQ(pulls_, 1 + 2);
}

// What is kept of a large import never takes much more than the memory for it.
TEST_F(ValuePiecesTest, PiecesWaitForCheckpointsThatMakeRoom) {
  constexpr uint64_t kMost = 10'000;
  c().EnableRecovery(directory_->path() + "/checkpoints");
  c().runtime().SetMostKept(kMost);
  c().StartFresh();
  std::atomic<bool> done{false};
  int checkpoints = 0;
  uint64_t most_kept = 0;
  std::thread keeper([&] {
    while (!done) {
      std::this_thread::yield();
      if (!c().runtime().updates_paused()) continue;
      most_kept = std::max(most_kept, c().runtime().uncovered_bytes());
      MU_EXPECT_OK(c().Checkpoint().status());
      ++checkpoints;
    }
  });
  const absl::Status status = AssignTable(1000);
  done = true;
  keeper.join();
  MU_ASSERT_OK(status);
  EXPECT_GE(checkpoints, 2) << "two have to hold what was assigned";
  EXPECT_GE(most_kept, kMost * 9 / 10);
  EXPECT_LT(most_kept, 2 * kMost);
  EXPECT_EQ(Existing(100), Expected(1000));
}

// Else it would have come as far as the memory reaches.
TEST_F(ValuePiecesTest, WhatNeedsACheckpointIsRefusedBeforeThereCanBeOne) {
  c().EnableRecovery(directory_->path() + "/checkpoints");
  c().runtime().SetMostKept(10'000);
  EXPECT_THAT(AssignTable(1000),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("StartFresh()")));
  EXPECT_TRUE(Assigns().empty());
  MU_EXPECT_OK(AssignTable(100));
}

TEST_F(ValuePiecesTest, TheLastPieceMayFillTheMemory) {
  c().EnableRecovery(directory_->path() + "/checkpoints");
  c().runtime().SetMostKept(2600);  // 90% of it: less than the values and numbers of two pieces
  EXPECT_THAT(AssignTable(2 * kInPiece + 1), HasCode(absl::StatusCode::kFailedPrecondition));
  EXPECT_TRUE(Assigns().empty());
  MU_EXPECT_OK(AssignTable(2 * kInPiece));
  EXPECT_EQ(Assigns().size(), 2u);
  EXPECT_EQ(Existing(100), Expected(2 * kInPiece));
  EXPECT_THAT(AssignTable(1), HasCode(absl::StatusCode::kFailedPrecondition)) << "it is full now";
  EXPECT_EQ(Assigns().size(), 2u);
}

}  // namespace
}  // namespace mu
