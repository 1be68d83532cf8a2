#include "coordinator/cluster/expected_jobs.h"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>

#include "common/base/steady_now.h"

namespace mu {
namespace {

// Much longer than it takes.
constexpr absl::Duration kSoon = absl::Seconds(10);

class ExpectedJobsTest : public ::testing::Test {
 protected:
  ExpectedJobsTest() {
    loop_.Start([] { return absl::InfiniteFuture(); }, [] {});
  }
  ~ExpectedJobsTest() override { loop_.Stop(); }

  std::shared_ptr<ExpectedJobs::Token> Expect() {
    return loop_.Ask([this] { return expected_.Expect(); });
  }
  bool None() {
    return loop_.Ask([this] { return expected_.none(); });
  }
  bool NoneSoon() {
    return loop_.Await([this] { return expected_.none(); }, SteadyNow() + kSoon);
  }

  std::atomic<int> ran_{0};
  Loop loop_;
  ExpectedJobs expected_{&loop_};
};

TEST_F(ExpectedJobsTest, AreThereUntilAllHaveBeenBrought) {
  EXPECT_TRUE(None());
  const auto first = Expect(), second = Expect();
  first->Post([this] { ++ran_; });
  EXPECT_FALSE(None()) << "one is to come";
  second->Post([this] { ++ran_; });
  EXPECT_TRUE(NoneSoon());
  EXPECT_EQ(ran_, 2);
}

TEST_F(ExpectedJobsTest, ACallbackThatIsCalledTwiceBringsOne) {
  const auto job = Expect(), other = Expect();
  for (int i = 0; i < 2; ++i) job->Post([this] { ++ran_; });
  EXPECT_FALSE(None()) << "the other one is to come";
  EXPECT_EQ(ran_, 1);
  other->Post(nullptr);
  EXPECT_TRUE(NoneSoon());
}

TEST_F(ExpectedJobsTest, ACallbackThatIsDroppedBringsNone) {
  std::function<void()> callback = [job = Expect()] { job->Post(nullptr); };
  auto copy = callback;
  callback = nullptr;
  EXPECT_FALSE(None()) << "there is a copy";
  copy = nullptr;
  EXPECT_TRUE(NoneSoon());
}

}  // namespace
}  // namespace mu
