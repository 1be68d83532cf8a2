// Results that a message does not take, and results that share messages.
#include <string>
#include <vector>

#include "common/base/error_kind.h"
#include "common/rpc/resumable_end.h"
#include "tests/worker/test_functions.h"
#include "worker/held_results.h"

namespace mu {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::StatusIs;

// steps += 1, and returns so many floats.
pb::FunctionProto Returns(const std::string& name, int64_t floats) {
  testing::GraphMaker g;
  g.function().set_name(name);
  g.function().set_dataset(0);
  g.Update("assign_add", "steps", 0, pb::INT64, Shape(), g.Constant(testing::One()));
  g.Return("values", g.Constant(Tensor::Of<float>(
                         Shape({floats}), std::vector<float>(static_cast<size_t>(floats)))));
  return g.function();
}

class ResultSizeTest : public ::testing::Test {
 protected:
  static WorkerOptions Options() {
    WorkerOptions options;
    options.most_result_bytes = 10'000;
    return options;
  }
  void SetUp() override {
    AddCounters(&cluster_);
    MU_ASSERT_OK(cluster_.Configure());
  }
  testing::WorkerCluster cluster_{1, absl::Seconds(20), Options()};
};

TEST_F(ResultSizeTest, AResultAboveTheLimitIsTheFunctionsError) {
  const pb::FunctionProto large = Returns("large", 2'500);
  const pb::FunctionProto small = Returns("small", 2'400);
  MU_ASSERT_OK(cluster_.InstallFunction(large));
  MU_ASSERT_OK(cluster_.InstallFunction(small));
  const auto refused = cluster_.Start(cluster_.MakeRun(1, large, 2));
  const absl::Status status = refused->Wait();
  EXPECT_THAT(status,
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("function 'large', step 0"), HasSubstr(" 10000 at most"),
                             HasSubstr("return smaller ones"))));
  EXPECT_EQ(KindOf(status), pb::ERROR_USER);
  EXPECT_EQ(refused->steps().size(), 0u);
  EXPECT_EQ(testing::Steps(cluster_), 1) << "the step after it is not executed";
  const auto taken = cluster_.Start(cluster_.MakeRun(2, small, 2));
  MU_EXPECT_OK(taken->Wait());
  ASSERT_EQ(taken->steps().size(), 2u);
  EXPECT_LE(taken->steps()[0].ByteSizeLong(), 10'000u);
}

TEST_F(ResultSizeTest, SoIsWhatIsSaidOfBadRecords) {
  std::vector<std::string> lines(200, "no number");
  lines[0] = "1";
  MU_ASSERT_OK(cluster_.InstallData(lines, 200, pb::ON_BAD_RECORD_SKIP));
  const pb::FunctionProto function = testing::SumBatches();
  MU_ASSERT_OK(cluster_.InstallFunction(function));
  EXPECT_THAT(cluster_.Start(cluster_.MakeRun(1, function, 1))->Wait(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("said of the bad records"), HasSubstr(" 10000 at most"))));
}

// Keeps what it is told.
class KeepingCall final : public ServerCall {
 public:
  bool IsCancelled() const override { return false; }
  void OnCancel(std::function<void()>) override {}
  void Send(Buffer message) override {
    pb::RunReply reply;
    EXPECT_TRUE(reply.ParseFromArray(message.data(), static_cast<int>(message.size())));
    sent.push_back(std::move(reply));
  }
  void Finish(absl::Status, Buffer) override {}
  std::vector<pb::RunReply> sent;
};

std::vector<uint32_t> StepsOf(const pb::RunReply& reply) {
  std::vector<uint32_t> steps;
  for (const pb::StepResult& step : reply.steps()) steps.push_back(step.step());
  return steps;
}

TEST(HeldResults, AreDividedWhereTheyAreTooManyForOneMessage) {
  pb::RunReply held;
  const auto add = [&](size_t bytes) {
    pb::StepResult& step = *held.add_steps();
    step.set_step(static_cast<uint32_t>(held.steps_size()));
    step.set_bad_record_message(std::string(bytes, 'x'));
  };
  for (int i = 0; i < 5; ++i) add(kMessageBytes * 2 / 5);
  add(3 * kMessageBytes);
  add(1);
  add(1);
  KeepingCall call;
  const pb::RunReply last = SendAllButLast(call, std::move(held));
  ASSERT_EQ(call.sent.size(), 4u);
  EXPECT_THAT(StepsOf(call.sent[0]), ElementsAre(1, 2));
  EXPECT_THAT(StepsOf(call.sent[1]), ElementsAre(3, 4));
  EXPECT_THAT(StepsOf(call.sent[2]), ElementsAre(5));
  EXPECT_THAT(StepsOf(call.sent[3]), ElementsAre(6));
  EXPECT_THAT(StepsOf(last), ElementsAre(7, 8));
}

TEST(HeldResults, OfNoneNothingIsSent) {
  KeepingCall call;
  EXPECT_EQ(SendAllButLast(call, {}).steps_size(), 0);
  EXPECT_TRUE(call.sent.empty());
}

}  // namespace
}  // namespace mu
