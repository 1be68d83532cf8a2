// Errors of functions, and calls that are refused.
#include "tests/conformance/conformance.h"

namespace mu {
namespace {

using ::testing::AllOf;
using testing::DefineLog;
using testing::Eventually;
using testing::HasCode;
using ::testing::HasSubstr;
using testing::kForever;
using testing::StartCounting;
using testing::StatusIs;

TEST(Conformance, ErrorRaisedOnce) {
  MU_ASSERT_OK_AND_ASSIGN(auto t, StartCounting());
  MU_ASSERT_OK_AND_ASSIGN(const Function log, DefineLog(t.c(), "log_of_x"));
  const RemoteValue bad = t.c().Schedule(log, {.args = {{"x", -1}}});
  EXPECT_FALSE(bad.Fetch().ok());
  const absl::Status joined = t.c().Join();
  EXPECT_FALSE(joined.ok());
  EXPECT_EQ(KindOf(joined), pb::ERROR_USER) << joined;
  MU_EXPECT_OK(t.c().Join()) << "once";
  MU_EXPECT_OK(t.c().Done());
  const RemoteValue good = t.c().Schedule(log, {.args = {{"x", 1}}});
  t.c().Schedule(t.count);
  MU_ASSERT_OK(t.c().Join());
  MU_EXPECT_OK(good.Fetch());
  EXPECT_EQ(t.Count(), 1) << "the coordinator works again";

  t.c().Schedule(log, {.args = {{"x", -1}}});
  absl::StatusOr<bool> done = false;
  while (done.ok() && !*done) done = t.c().Done();
  EXPECT_FALSE(done.ok()) << "Done raises as well";
  MU_EXPECT_OK(t.c().Join());
}

TEST(Conformance, ErrorCancelsTheRest) {
  MU_ASSERT_OK_AND_ASSIGN(auto t, StartCounting({.workers = 1, .ps = 2, .functions_in_flight = 1}));
  MU_ASSERT_OK_AND_ASSIGN(const Function log, DefineLog(t.c(), "log"));
  const RemoteValue running = t.c().Schedule(t.count, {.steps = kForever});
  while (t.c().Stats().steps == 0) std::this_thread::yield();
  const RemoteValue bad = t.c().Schedule(log, {.args = {{"x", -1}}});
  std::vector<RemoteValue> queued;
  for (int i = 0; i < 20; ++i) queued.push_back(t.c().Schedule(t.count, {.steps = kForever}));
  EXPECT_EQ(t.c().Stats().unfinished, 22u);
  MU_ASSERT_OK(t.cluster->StartWorker(1));  // the first one is busy: this one meets the error
  const absl::Status joined = t.c().Join();
  EXPECT_THAT(joined, HasCode(absl::StatusCode::kInvalidArgument));
  const std::vector<int64_t> counts = t.Counts();
  EXPECT_EQ(bad.Fetch().status(), joined);
  EXPECT_THAT(running.Fetch(), HasCode(absl::StatusCode::kCancelled));
  for (const RemoteValue& value : queued)
    EXPECT_THAT(value.Fetch(), HasCode(absl::StatusCode::kCancelled));
  EXPECT_FALSE(Eventually([&] { return t.Counts() != counts; }, absl::Milliseconds(200)))
      << "an update arrived after Join had returned";
  EXPECT_EQ(t.c().Stats().unfinished, 0u);
}

TEST(Conformance, SeveralErrors) {
  MU_ASSERT_OK_AND_ASSIGN(auto t, StartCounting());
  MU_ASSERT_OK_AND_ASSIGN(const Function first, DefineLog(t.c(), "first_log"));
  MU_ASSERT_OK_AND_ASSIGN(const Function second, DefineLog(t.c(), "second_log", 0.5f));
  t.c().Schedule(first, {.args = {{"x", -1}}});
  for (int i = 0; i < 5; ++i) t.c().Schedule(second, {.args = {{"x", -1}}});
  const absl::Status joined = t.c().Join();
  EXPECT_THAT(std::string(joined.message()),
              AllOf(HasSubstr("'first_log'"), HasSubstr("step 0"), HasSubstr("conformance.h:")));
  const auto detail = DetailOf(joined);
  ASSERT_TRUE(detail.has_value());
  EXPECT_EQ(detail->function(), "first_log");
  EXPECT_EQ(detail->op(), "log");
  MU_EXPECT_OK(t.c().Join());
}

TEST(Conformance, ErroredInputUnused) {
  MU_ASSERT_OK_AND_ASSIGN(auto t, StartCounting());
  MU_ASSERT_OK_AND_ASSIGN(
      const Dataset data,
      t.c().CreateDataset(Csv({t.cluster->directory() + "/none.csv"}).Number("x", 0).Batch(2)));
  MU_ASSERT_OK_AND_ASSIGN(const Function reads,
                          t.c().DefineFunction("reads", [&](FunctionBuilder& f) {
                            f.Return("sum", ReduceSum(f.NextBatch(data)["x"]));
                          }));
  t.c().Schedule(t.count);
  MU_EXPECT_OK(t.c().Join());
  t.c().Schedule(reads);
  EXPECT_THAT(t.c().Join(), StatusIs(absl::StatusCode::kNotFound, HasSubstr("none.csv")));
  t.c().Schedule(t.count);
  MU_EXPECT_OK(t.c().Join());
  EXPECT_EQ(t.Count(), 2);
}

TEST(Conformance, RemoteValueAsArgumentRefused) {
  MU_ASSERT_OK_AND_ASSIGN(auto t, StartCounting());
  MU_ASSERT_OK_AND_ASSIGN(const Function log, DefineLog(t.c(), "log"));
  const RemoteValue one = t.c().Schedule(log, {.args = {{"x", 1}}});
  const RemoteValue refused = t.c().Schedule(log, {.args = {{"x", one}}});
  EXPECT_THAT(refused.Fetch(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("Fetch it first")));
}

TEST(Conformance, ArgumentGivenTwiceRefused) {
  MU_ASSERT_OK_AND_ASSIGN(auto t, StartCounting());
  MU_ASSERT_OK_AND_ASSIGN(const Function log, DefineLog(t.c(), "log"));
  EXPECT_THAT(t.c().Schedule(log, {.args = {{"x", 1}, {"x", -1}}}).Fetch(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("argument 'x' twice")));
  MU_EXPECT_OK(t.c().Join()) << "that was the report";
}

TEST(Conformance, UnknownFunctionRefused) {
  MU_ASSERT_OK_AND_ASSIGN(auto t, StartCounting());
  EXPECT_THAT(
      t.c().Schedule(Function()).Fetch(),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("not defined by this coordinator")));
  t.c().Join().IgnoreError();
  MU_ASSERT_OK_AND_ASSIGN(auto other, StartCounting());
  EXPECT_THAT(t.c().Schedule(other.count).Fetch(), HasCode(absl::StatusCode::kInvalidArgument));
  EXPECT_EQ(t.c().Stats().unfinished, 0u);
}

TEST(Conformance, VariableCreatedInsideFunctionRefused) {
  MU_ASSERT_OK_AND_ASSIGN(auto t, StartCounting());
  absl::Status inside;
  const auto defined = t.c().DefineFunction("creates", [&](FunctionBuilder& f) {
    inside = t.c().CreateVariable({.name = "late"}).status();
    f.Return("x", f.Arg("x"));
  });
  EXPECT_THAT(inside, StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("outside")));
  MU_EXPECT_OK(t.c().CreateVariable({.name = "late"})) << "the name is still free";
}

}  // namespace
}  // namespace mu
