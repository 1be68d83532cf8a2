// Views of checkpoints, through the client: their values, and that nothing changes them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "common/env/file.h"
#include "tests/psserver/cluster.h"
#include "tests/psserver/state.h"
#include "tests/testing/matchers.h"

namespace mu {
namespace {

using ::mu::testing::HasCode;
using ::mu::testing::PsCluster;
using ::mu::testing::StateOf;
using ::mu::testing::StatusIs;
using ::mu::testing::Step;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;
using Files = std::vector<pb::CheckpointFileProto>;

// Two servers; a checkpoint after one step.
class ViewsTest : public ::testing::Test {
 protected:
  ViewsTest() : cluster_(2) {
    auto directory = TempDirectory::Create("muster_views_test");
    MU_CHECK(directory.ok());
    directory_ = std::make_unique<TempDirectory>(*std::move(directory));
    MU_CHECK(cluster_.Configure().ok());
    Step(&cluster_, 1, {0, 1, 2, 63, 64, 130});
    files_ = *cluster_.admin().Save(cluster_.context(), path());
    saved_ = StateOf(&cluster_);
  }

  const std::string& path() const { return directory_->path(); }
  absl::Status Load(uint64_t view) {
    return cluster_.admin().LoadView(cluster_.context(), view, path(), files_).status();
  }
  PsSession Session(uint64_t view, const pb::StalenessProto* staleness = nullptr) {
    return PsSession(&cluster_.client(),
                     {.context = cluster_.context(), .view = view, .staleness = staleness});
  }
  // Row `id` of table "items".
  std::vector<float> Row(PsSession session, int64_t id) {
    std::vector<float> row(16);
    const std::vector<int64_t> ids = {id};
    const RowsRead read{100, ids, row.data()};
    MU_EXPECT_OK(session.Pull({}, {&read, 1}));
    return row;
  }
  // Of both servers.
  pb::PsStatsReply Stats() {
    pb::PsStatsReply sum;
    const auto stats = cluster_.admin().Stats(cluster_.context());
    EXPECT_THAT(stats, testing::IsOk());
    for (const pb::PsStatsReply& one : *stats) {
      sum.set_views(sum.views() + one.views());
      sum.set_view_bytes(sum.view_bytes() + one.view_bytes());
      sum.set_value_bytes(sum.value_bytes() + one.value_bytes());
      sum.set_rows(sum.rows() + one.rows());
    }
    return sum;
  }

  std::unique_ptr<TempDirectory> directory_;
  PsCluster cluster_;
  Files files_;
  std::string saved_;
};

TEST_F(ViewsTest, HasTheValuesOfItsCheckpointWhateverBecomesOfTheState) {
  MU_ASSERT_OK(Load(7));
  Step(&cluster_, 2, {1, 2, 5, 200});
  EXPECT_FALSE(StateOf(&cluster_) == saved_);
  EXPECT_TRUE(StateOf(&cluster_, 7) == saved_);

  cluster_.context().set_generation(2);
  MU_ASSERT_OK(cluster_.admin().Restore(cluster_.context(), "", {}));
  EXPECT_FALSE(StateOf(&cluster_) == saved_);
  EXPECT_TRUE(StateOf(&cluster_, 7) == saved_) << "it is of no generation";
  Step(&cluster_, 3, {1, 499});
  EXPECT_TRUE(StateOf(&cluster_, 7) == saved_);
  MU_ASSERT_OK(Load(7));
  EXPECT_TRUE(StateOf(&cluster_, 7) == saved_);
}

TEST_F(ViewsTest, IsLoadedFromTheFilesOfAnyNumberOfServers) {
  PsCluster others(3);
  MU_ASSERT_OK(others.Configure());
  MU_ASSERT_OK(others.admin().LoadView(others.context(), 1, path(), files_));
  EXPECT_TRUE(StateOf(&others, 1) == saved_);
}

TEST_F(ViewsTest, SeveralViewsAndTheStateAreReadSideBySide) {
  MU_ASSERT_OK(Load(1));
  Step(&cluster_, 2, {1, 2, 3});
  const std::string later = StateOf(&cluster_);
  const std::string second = JoinPath(path(), "second");
  MU_ASSERT_OK_AND_ASSIGN(const Files files, cluster_.admin().Save(cluster_.context(), second));
  MU_ASSERT_OK(cluster_.admin().LoadView(cluster_.context(), 2, second, files));
  Step(&cluster_, 3, {1, 2, 3});
  EXPECT_TRUE(StateOf(&cluster_, 1) == saved_);
  EXPECT_TRUE(StateOf(&cluster_, 2) == later);

  // One session after the other's options, as a worker keeps it for its buffers.
  PsSession session = Session(1);
  const auto steps = [&] {
    int64_t steps = 0;
    const VariableRead read{2, &steps};
    MU_EXPECT_OK(session.Pull({&read, 1}, {}));
    return steps;
  };
  EXPECT_EQ(steps(), 1);
  session.BeginFunction({.context = cluster_.context()});
  EXPECT_EQ(steps(), 3);
  session.BeginFunction({.context = cluster_.context(), .view = 2});
  EXPECT_EQ(steps(), 2);
  MU_ASSERT_OK(cluster_.admin().DropView(cluster_.context(), 1));
  EXPECT_EQ(steps(), 2);
  EXPECT_EQ(Stats().views(), 2u) << "one on each server";
}

// As a read-only pull of the state does.
TEST_F(ViewsTest, RowsThatItLacksHaveTheirInitialValues) {
  MU_ASSERT_OK(Load(1));
  const std::vector<float> initial = Row(cluster_.Session(0, /*read_only=*/true), 77);
  const uint64_t rows = Stats().rows();
  EXPECT_EQ(Row(Session(1), 77), initial);
  EXPECT_THAT(initial, ::testing::Not(Each(0.0f)));
  Step(&cluster_, 2, {77});  // creates it
  EXPECT_NE(Row(cluster_.Session(), 77), initial);
  EXPECT_EQ(Row(Session(1), 77), initial);
  EXPECT_EQ(Stats().rows(), rows + 2) << "pulls of the view create none; the step: of two tables";
  const uint64_t bytes = Stats().view_bytes();
  EXPECT_EQ(Row(Session(1), 499), Row(cluster_.Session(0, true), 499));
  EXPECT_EQ(Stats().view_bytes(), bytes);
}

TEST_F(ViewsTest, IsInNoCheckpointAndAddsNothingToTheState) {
  const pb::PsStatsReply before = Stats();
  EXPECT_EQ(before.view_bytes(), 0u);
  MU_ASSERT_OK_AND_ASSIGN(const uint64_t bytes,
                          cluster_.admin().LoadView(cluster_.context(), 1, path(), files_));
  const pb::PsStatsReply with = Stats();
  EXPECT_EQ(with.view_bytes(), bytes);
  EXPECT_EQ(with.value_bytes(), before.value_bytes());
  EXPECT_EQ(with.rows(), before.rows());
  // weights, bias, steps, seen, average, kernel; 6 rows of both tables: no slots.
  EXPECT_EQ(bytes, 4u * (30 + 1 + 2 + 4 + 3 + 300 * 700 + 6 * (16 + 4)));

  MU_ASSERT_OK_AND_ASSIGN(const Files again,
                          cluster_.admin().Save(cluster_.context(), JoinPath(path(), "again")));
  for (size_t i = 0; i < files_.size(); ++i) {
    EXPECT_EQ(again[i].bytes(), files_[i].bytes());
    EXPECT_EQ(again[i].crc32c(), files_[i].crc32c());
  }
  MU_ASSERT_OK(cluster_.admin().DropView(cluster_.context(), 1));
  EXPECT_EQ(Stats().view_bytes(), 0u);
  EXPECT_EQ(Stats().views(), 0u);
}

TEST_F(ViewsTest, ServersMultiplyWithItsValues) {
  MU_ASSERT_OK(Load(1));
  const auto product = [&](uint64_t view) {
    PsSession session = Session(view);
    const std::vector<float> x(5, 1.0f);
    std::vector<float> out(6);
    const ProductRead read{/*variable=*/0, /*back=*/false, /*batch=*/1, x.data(), out.data()};
    MU_EXPECT_OK(session.Multiply({&read, 1}));
    return out;
  };
  const std::vector<float> saved = product(0);
  EXPECT_EQ(product(1), saved);
  Step(&cluster_, 2, {1});
  EXPECT_NE(product(0), saved);
  EXPECT_EQ(product(1), saved);
}

TEST_F(ViewsTest, WhoReadsItPushesNothing) {
  MU_ASSERT_OK(Load(1));
  PsSession session = Session(1);
  const int64_t one = 1;
  const VariableWrite write{2, VariableWrite::kAssignAdd, &one};
  EXPECT_THAT(session.Push({&write, 1}, {}),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("view")));
  int64_t steps = 0;
  const VariableRead read{2, &steps};
  MU_ASSERT_OK(cluster_.Session(0, true).Pull({&read, 1}, {}));
  EXPECT_EQ(steps, 1);
}

TEST_F(ViewsTest, AnUnknownViewIsToBeLoadedFirst) {
  PsSession session = Session(3);
  float bias = 0;
  const VariableRead read{1, &bias};
  const auto pull = [&] { return session.Pull({&read, 1}, {}); };
  const absl::Status unknown = pull();
  EXPECT_THAT(unknown, StatusIs(absl::StatusCode::kFailedPrecondition,
                                AllOf(HasSubstr("view 3"), HasSubstr("LoadView"))));
  EXPECT_EQ(KindOf(unknown), pb::ERROR_NOT_INSTALLED);
  EXPECT_EQ(DetailOf(unknown)->role(), pb::ROLE_PSSERVER);
  MU_ASSERT_OK(Load(3));
  MU_EXPECT_OK(pull());
  MU_ASSERT_OK(cluster_.admin().DropView(cluster_.context(), 3));
  EXPECT_EQ(KindOf(pull()), pb::ERROR_NOT_INSTALLED);
  MU_EXPECT_OK(cluster_.admin().DropView(cluster_.context(), 3)) << "a repeat";
  EXPECT_EQ(KindOf(Load(3)), pb::ERROR_STALE) << "a copy that comes late";
  EXPECT_EQ(Stats().view_bytes(), 0u);
}

TEST_F(ViewsTest, ANumberIsOfOneCheckpoint) {
  MU_ASSERT_OK(Load(1));
  Files others = files_;
  others[0].set_crc32c(others[0].crc32c() + 1);
  const absl::Status other =
      cluster_.admin().LoadView(cluster_.context(), 1, path(), others).status();
  EXPECT_THAT(other, HasCode(absl::StatusCode::kFailedPrecondition));
  EXPECT_EQ(KindOf(other), pb::ERROR_USER);
  EXPECT_TRUE(StateOf(&cluster_, 1) == saved_);
  MU_ASSERT_OK(RemoveTree(path()));
  MU_EXPECT_OK(Load(1)) << "a repeat reads no files";
  MU_EXPECT_OK(cluster_.admin().LoadView(cluster_.context(), 1, path() + ".1", files_).status())
      << "the folder has been renamed";
  MU_ASSERT_OK(MakeDirectories(path()));
}

TEST_F(ViewsTest, ANewerCoordinatorBeginsWithoutThem) {
  MU_ASSERT_OK(Load(1));
  cluster_.context().set_epoch(2);
  MU_ASSERT_OK(cluster_.Configure());
  EXPECT_EQ(Stats().view_bytes(), 0u);
  EXPECT_EQ(Stats().views(), 0u);
  float bias = 0;
  const VariableRead read{1, &bias};
  EXPECT_EQ(KindOf(Session(1).Pull({&read, 1}, {})), pb::ERROR_NOT_INSTALLED);
  MU_EXPECT_OK(Load(1));
  EXPECT_TRUE(StateOf(&cluster_, 1) == saved_);
  cluster_.context().set_epoch(1);
  EXPECT_EQ(KindOf(Load(2)), pb::ERROR_STALE);
  EXPECT_EQ(KindOf(Session(1).Pull({&read, 1}, {})), pb::ERROR_STALE);
}

// The values are of no moment of the training.
TEST_F(ViewsTest, TellsNoClocks) {
  MU_ASSERT_OK(Load(1));
  pb::StalenessProto counted;
  PsSession reader = Session(1, &counted);
  float bias = 0;
  const VariableRead read{1, &bias};
  MU_ASSERT_OK(reader.Pull({&read, 1}, {}));
  // The same session goes on with a function that changes the values which that has not read.
  reader.BeginFunction({.context = cluster_.context(), .function = 9, .staleness = &counted});
  const float gradient = 1;
  const VariableWrite write{1, VariableWrite::kGradient, &gradient};
  MU_ASSERT_OK(reader.Push({&write, 1}, {}));
  EXPECT_EQ(reader.push_late(), std::nullopt) << "from what it was computed is not known";
}

}  // namespace
}  // namespace mu
