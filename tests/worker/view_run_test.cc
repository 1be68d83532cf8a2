// Runs that read the values of a checkpoint while others train.
#include "common/env/file.h"
#include "tests/worker/test_functions.h"

namespace mu {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::StatusIs;
using testing::ValueOf;

// Returns "steps" and row 3 of the table, which it does not create.
pb::FunctionProto Look() {
  testing::GraphMaker g;
  g.function().set_name("look");
  g.function().set_dataset(0);
  g.Return("steps", g.Read("steps", 0, pb::INT64, Shape()));
  const auto ids = g.Op("unique", {g.Constant(Tensor::Of<int64_t>(Shape({1}), {3}))});
  g.Return("row", g.PullRows("rows", 0, 100, 2, ids));
  return g.function();
}

// Two servers, and view 5: the state after 3 steps.
class ViewRunTest : public ::testing::Test {
 protected:
  void SetUp() override {
    AddCounters(&cluster_);
    cluster_.AddTable("rows", 100, 2);
    MU_ASSERT_OK(cluster_.Configure());
    MU_ASSERT_OK(cluster_.InstallFunction(count_));
    MU_ASSERT_OK(cluster_.InstallFunction(look_));
    MU_ASSERT_OK(Run(count_, 3)->Wait());
    MU_ASSERT_OK_AND_ASSIGN(directory_, MakeTempDirectory("muster_view_run_test"));
    PsAdmin admin(&cluster_.client());
    MU_ASSERT_OK_AND_ASSIGN(const auto files, admin.Save(cluster_.context(), directory_));
    MU_ASSERT_OK(admin.LoadView(cluster_.context(), 5, directory_, files).status());
  }
  void TearDown() override { MU_EXPECT_OK(RemoveTree(directory_)); }

  std::shared_ptr<testing::RunHandle> Run(const pb::FunctionProto& function, uint32_t steps,
                                          uint64_t view = 0) {
    auto request = cluster_.MakeRun(++function_id_, function, steps);
    request.set_view(view);
    return cluster_.Start(request);
  }
  uint64_t Rows() {
    uint64_t rows = 0;
    const auto stats = PsAdmin(&cluster_.client()).Stats(cluster_.context());
    EXPECT_THAT(stats, testing::IsOk());
    for (const auto& server : *stats) rows += server.rows();
    return rows;
  }

  testing::WorkerCluster cluster_{2};
  const pb::FunctionProto count_ = testing::CountSteps(), look_ = Look();
  std::string directory_;
  uint64_t function_id_ = 0;
};

TEST_F(ViewRunTest, EveryStepReadsTheView) {
  std::vector<std::shared_ptr<testing::RunHandle>> looks, views;
  for (int i = 0; i < 4; ++i) {  // in turn, on one worker
    looks.push_back(Run(look_, 1));
    views.push_back(Run(look_, 2, 5));
    MU_ASSERT_OK(Run(count_, 2)->Wait());
  }
  for (int i = 0; i < 4; ++i) {
    MU_ASSERT_OK(looks[i]->Wait());
    MU_ASSERT_OK(views[i]->Wait());
    EXPECT_EQ(ValueOf<int64_t>(looks[i]->steps()[0], 0), 3 + 2 * i);
    ASSERT_EQ(views[i]->steps().size(), 2u);
    for (const auto& step : views[i]->steps()) {
      EXPECT_EQ(ValueOf<int64_t>(step, 0), 3);
      EXPECT_EQ(step.updates_size(), 0);
      EXPECT_EQ(step.returns(1).data(), looks[i]->steps()[0].returns(1).data())
          << "the row's initial value";
    }
  }
  EXPECT_EQ(Rows(), 0u);
  EXPECT_EQ(Steps(cluster_), 11);
}

TEST_F(ViewRunTest, AFunctionThatChangesSomethingIsRefused) {
  const absl::Status refused = Run(count_, 1, 5)->Wait();
  EXPECT_THAT(refused, StatusIs(absl::StatusCode::kInvalidArgument,
                                AllOf(HasSubstr("count_steps"), HasSubstr("checkpoint"))));
  EXPECT_EQ(KindOf(refused), pb::ERROR_USER);
  EXPECT_EQ(Steps(cluster_), 3);
  MU_EXPECT_OK(Run(count_, 1)->Wait());
}

TEST_F(ViewRunTest, SaysThatServersLackTheView) {
  const absl::Status unknown = Run(look_, 1, 6)->Wait();
  EXPECT_THAT(unknown, StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("view 6")));
  EXPECT_EQ(KindOf(unknown), pb::ERROR_NOT_INSTALLED);
  EXPECT_EQ(DetailOf(unknown)->role(), pb::ROLE_PSSERVER) << "not the worker lacks something";
  MU_EXPECT_OK(Run(look_, 1, 5)->Wait());
}

// What is lost on the way is asked for again, of the view.
TEST_F(ViewRunTest, LostAndRepeatedPullsReadTheView) {
  for (const Fault fault : {Fault::kLoseRequest, Fault::kLoseReply, Fault::kDuplicate})
    cluster_.faults().Add({.method = "Pull", .fault = fault, .probability = 0.2});
  MU_ASSERT_OK(Run(count_, 1)->Wait());
  const auto run = Run(look_, 20, 5);
  MU_ASSERT_OK(run->Wait());
  EXPECT_GT(cluster_.faults().hits(), 0);
  for (const auto& step : run->steps()) EXPECT_EQ(ValueOf<int64_t>(step, 0), 3);
}

}  // namespace
}  // namespace mu
