#include "coordinator/core/installations.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tests/coordinator/core/core_driver.h"

namespace mu {
namespace {

using testing::CoreDriver;
using testing::FoundWrong;
using testing::MachineFault;

constexpr InstallPart kRouting{}, kData{InstallPart::Kind::kDataset, 1},
    kOne{InstallPart::Kind::kFunction, 3}, kTwo{InstallPart::Kind::kFunction, 4};
constexpr absl::Duration kPatience = absl::Seconds(10);  // for the short tests

class InstallationsTest : public ::testing::Test {
 protected:
  // "routing to 0, routing to 1".
  std::string Next() {
    return absl::StrJoin(all_.Next(now_), ", ", [](std::string* out, const auto& given) {
      absl::StrAppend(out, Describe(given.part), " to ", given.worker.value());
    });
  }
  void Want(uint32_t first, uint32_t end) {
    for (uint32_t w = first; w < end; ++w) all_.Want(WorkerId(w));
  }
  bool Took(uint32_t worker) {
    EXPECT_TRUE(all_.Answered(WorkerId(worker)).has_value()) << worker;
    return all_.Took(WorkerId(worker));
  }

  absl::Time now_ = absl::UnixEpoch();
  Installations all_{Installations::Options{.most = 2, .patience = kPatience}};
};

TEST_F(InstallationsTest, APartComesAfterWhatItMayReferTo) {
  all_.CatalogChanged(1, {kTwo});
  all_.CatalogChanged(2, {kOne, kData});
  all_.CatalogChanged(3, {kRouting});
  Want(0, 1);
  EXPECT_EQ(Next(), "routing to 0");
  EXPECT_EQ(Next(), "") << "one at a time";
  EXPECT_FALSE(Took(0));
  EXPECT_EQ(Next(), "dataset 1 to 0");
  EXPECT_FALSE(Took(0));
  EXPECT_EQ(Next(), "function 3 to 0");
  EXPECT_FALSE(Took(0));
  EXPECT_EQ(Next(), "function 4 to 0");
  EXPECT_EQ(all_.installed(WorkerId(0)), 0u);
  EXPECT_TRUE(Took(0));
  EXPECT_EQ(all_.installed(WorkerId(0)), 3u);
  Want(0, 1);
  EXPECT_EQ(Next(), "") << "it has everything";
}

TEST_F(InstallationsTest, AWorkerIsSentWhatItLacks) {
  all_.CatalogChanged(1, {kRouting});
  Want(0, 1);
  EXPECT_EQ(Next(), "routing to 0");
  all_.CatalogChanged(2, {kOne});
  Want(0, 1);
  EXPECT_TRUE(Took(0));
  EXPECT_EQ(all_.installed(WorkerId(0)), 1u) << "not what came after the installation had begun";
  Want(0, 1);
  EXPECT_EQ(Next(), "function 3 to 0");
  EXPECT_TRUE(Took(0));
  EXPECT_EQ(all_.installed(WorkerId(0)), 2u);
}

TEST_F(InstallationsTest, AThousandWorkersAreSentPartsOneAfterTheOther) {
  Installations all{Installations::Options()};
  all.CatalogChanged(1, {kRouting, kOne});
  std::vector<WorkerId> order, complete;
  for (uint32_t w = 0; w < 1000; ++w) {
    order.emplace_back(7 * w % 1000);
    all.Want(order.back());
  }
  std::deque<WorkerId> open;
  const auto next = [&] {
    for (const auto& given : all.Next(now_)) open.push_back(given.worker);
    EXPECT_LE(open.size(), 64u);
  };
  for (next(); !open.empty(); next()) {
    EXPECT_EQ(open.size(), std::min<size_t>(64, 1000 - complete.size()));
    const WorkerId worker = open.front();
    open.pop_front();
    ASSERT_TRUE(all.Answered(worker).has_value());
    if (all.Took(worker)) complete.push_back(worker);
  }
  EXPECT_EQ(complete, order) << "who comes first is ready first";
}

TEST_F(InstallationsTest, WhatHasBegunGoesOnBeforeOthersBegin) {
  all_.CatalogChanged(1, {kRouting, kOne});
  Want(0, 4);
  EXPECT_EQ(Next(), "routing to 0, routing to 1");
  EXPECT_EQ(Next(), "");
  EXPECT_FALSE(Took(1));
  EXPECT_EQ(Next(), "function 3 to 1");
  EXPECT_TRUE(Took(1));
  EXPECT_EQ(Next(), "routing to 2");
}

TEST_F(InstallationsTest, ALostWorkerGivesItsPlaceBack) {
  all_.CatalogChanged(1, {kRouting});
  Want(0, 6);
  EXPECT_EQ(Next(), "routing to 0, routing to 1");
  all_.Lost(WorkerId(3));
  EXPECT_EQ(Next(), "") << "it had none";
  all_.Lost(WorkerId(0));
  EXPECT_EQ(Next(), "routing to 2");
  EXPECT_FALSE(all_.Answered(WorkerId(0)).has_value()) << "too late";
  EXPECT_TRUE(Took(2));
  EXPECT_EQ(Next(), "routing to 4") << "what waited is lost as well";
  // It comes back, with nothing, and waits behind the others.
  Want(0, 1);
  EXPECT_TRUE(Took(1));
  EXPECT_EQ(Next(), "routing to 5");
  EXPECT_TRUE(Took(4));
  EXPECT_EQ(Next(), "routing to 0");
}

TEST_F(InstallationsTest, WorkersThatHangKeepOthersFromTheirsForTheirPatience) {
  all_.CatalogChanged(1, {kRouting, kOne});
  Want(0, 2);
  EXPECT_EQ(Next(), "routing to 0, routing to 1");
  EXPECT_EQ(all_.alarm(now_), absl::InfiniteFuture()) << "nobody waits";
  now_ += absl::Seconds(4);
  EXPECT_FALSE(Took(1));
  Want(2, 6);
  EXPECT_EQ(Next(), "function 3 to 1");
  now_ += absl::Seconds(5);
  EXPECT_EQ(Next(), "");
  EXPECT_EQ(all_.alarm(now_), now_ + absl::Seconds(1));
  now_ += absl::Seconds(1);
  EXPECT_EQ(Next(), "routing to 2");
  EXPECT_EQ(all_.alarm(now_), now_ + absl::Seconds(4)) << "of the other one's last part";
  // It was slow only: its next part is the next to be sent.
  EXPECT_FALSE(Took(0));
  EXPECT_EQ(Next(), "");
  EXPECT_FALSE(Took(2));
  EXPECT_EQ(Next(), "function 3 to 2");
  EXPECT_TRUE(Took(2));
  EXPECT_EQ(Next(), "function 3 to 0");
  EXPECT_TRUE(Took(0));
  EXPECT_EQ(Next(), "routing to 3");
}

TEST_F(InstallationsTest, WhoForgetsIsSentEverythingAgain) {
  all_.CatalogChanged(1, {kRouting});
  Want(0, 1);
  Next();
  EXPECT_TRUE(Took(0));
  all_.CatalogChanged(2, {kOne});
  Want(0, 1);
  EXPECT_EQ(Next(), "function 3 to 0");
  all_.Forgot(WorkerId(0));
  EXPECT_FALSE(Took(0)) << "it has what is new, not the rest";
  EXPECT_EQ(all_.installed(WorkerId(0)), 0u);
  Want(0, 1);
  EXPECT_EQ(Next(), "routing to 0");
}

TEST_F(InstallationsTest, WhatFailsIsSentAgainUnlessItIsWrong) {
  all_.CatalogChanged(1, {kRouting, kData});
  Want(0, 1);
  Next();
  EXPECT_FALSE(Took(0));
  for (const bool wrong : {false, true}) {
    EXPECT_EQ(Next(), "dataset 1 to 0");
    const auto sent = all_.Answered(WorkerId(0));
    ASSERT_TRUE(sent.has_value());
    EXPECT_EQ(sent->part, kData);
    EXPECT_EQ(sent->at, now_);
    now_ += absl::Seconds(1);
    all_.Failed(WorkerId(0), wrong);
    EXPECT_EQ(Next(), "") << "until it is wanted";
    Want(0, 1);
    if (!wrong) {
      EXPECT_EQ(Next(), "routing to 0") << "from its beginning";
      EXPECT_FALSE(Took(0));
    }
  }
  EXPECT_EQ(Next(), "") << "nobody would take it";
}

TEST_F(InstallationsTest, WhoIsSetAsideWaitsForNothing) {
  all_.CatalogChanged(1, {kRouting});
  Want(0, 4);
  EXPECT_EQ(Next(), "routing to 0, routing to 1");
  all_.Withdraw(WorkerId(2));
  all_.Withdraw(WorkerId(0));
  EXPECT_TRUE(Took(0)) << "what is under way comes to its end";
  EXPECT_EQ(Next(), "routing to 3");
  Want(2, 3);
  EXPECT_TRUE(Took(1));
  EXPECT_EQ(Next(), "routing to 2");
}

TEST_F(InstallationsTest, WhoIsSetAsideWithinAnInstallationIsNotSentTheRest) {
  all_.CatalogChanged(1, {kRouting, kOne});
  Want(0, 2);
  EXPECT_EQ(Next(), "routing to 0, routing to 1");
  all_.Withdraw(WorkerId(0));
  all_.Withdraw(WorkerId(1));
  Want(1, 2);  // pardoned
  EXPECT_FALSE(Took(0));
  EXPECT_EQ(Next(), "");
  EXPECT_EQ(all_.installed(WorkerId(0)), 0u);
  EXPECT_FALSE(Took(1));
  EXPECT_EQ(Next(), "function 3 to 1");
  Want(0, 1);
  EXPECT_EQ(Next(), "routing to 0") << "from the beginning";
  EXPECT_FALSE(Took(0));
  EXPECT_EQ(Next(), "function 3 to 0") << "nothing is left of what was withdrawn";
}

TEST(CoreInstallations, SixtyFourWorkersAreSentSomethingAtATime) {
  CoreDriver d;
  d.Serve(0);
  const auto installs = [&] {
    return std::count_if(d.last.begin(), d.last.end(), [](const Action& action) {
      return std::holds_alternative<action::Install>(action);
    });
  };
  int64_t sent = 0;
  for (uint32_t w = 0; w < 200; ++w) {
    d.Join(pb::ROLE_WORKER, 1000 + w, static_cast<int>(w));
    sent += installs();
  }
  EXPECT_EQ(sent, 64);
  EXPECT_EQ(d.Installed(0, 1000), "install routing on 64");
  EXPECT_EQ(d.Installed(1, 1001, MachineFault()), "worker 1 unreachable; install routing on 65");
  EXPECT_EQ(d.Join(pb::ROLE_WORKER, 2002, 2),
            "worker 2 replaced; worker 2 joins; install routing on 66");
  EXPECT_EQ(d.Installed(2, 1002), "") << "its predecessor's";
  // All of them hang.
  const absl::Time alarm = d.core.alarm();
  EXPECT_EQ(alarm, d.now + absl::Seconds(1));
  d.now = alarm - absl::Milliseconds(1);
  d.Step(event::Tick{});
  EXPECT_EQ(installs(), 0);
  d.now = alarm;
  d.Step(event::Tick{});
  EXPECT_EQ(installs(), 64);
}

// Those that take their leave make room, and so does time.
TEST(CoreInstallations, WhoWaitsForATurnIsSentNothingAfterTheEnd) {
  CoreDriver d;
  d.Serve(0);
  for (uint32_t w = 0; w <= Installations::Options().most; ++w)
    d.Join(pb::ROLE_WORKER, 1000 + w, static_cast<int>(w));
  EXPECT_EQ(d.Step(event::Close{}), "interrupt");
  EXPECT_EQ(d.Leave(pb::ROLE_WORKER, 1000, 0, 1), "worker 0 left; goodbye 1");
  EXPECT_EQ(d.TickAfter(Installations::Options().patience), "");
}

TEST(CoreInstallations, AFunctionThatIsWrongKeepsNoOtherFromTheWorker) {
  CoreDriver d;
  d.Serve(1);
  EXPECT_EQ(d.Define(3), "install function 3 on 0");
  EXPECT_EQ(d.Define(4), "");
  EXPECT_EQ(d.Installed(0, 10, FoundWrong()),
            "cancel below 1 in generation 1 on 1; install function 4 on 0");
  EXPECT_EQ(d.core.RefusalOf(Fingerprint(3)).message(), "wrong");
  EXPECT_EQ(d.Installed(0, 10), "");
  EXPECT_EQ(d.core.installations().installed(WorkerId(0)), 3u);
  EXPECT_EQ(d.Join(pb::ROLE_WORKER, 11, 1), "worker 1 joins; install routing on 1");
  EXPECT_EQ(d.Installed(1, 11), "install function 3 on 1");
  EXPECT_EQ(d.Installed(1, 11, FoundWrong()), "install function 4 on 1") << "users know";
}

TEST(CoreInstallations, ADatasetThatIsWrongIsNotSentAgain) {
  CoreDriver d;
  d.Serve(1);
  EXPECT_EQ(d.Step(event::CatalogChanged{2, 1, Generation(1), 1, {kData, kOne}}),
            "install dataset 1 on 0");
  EXPECT_EQ(d.Installed(0, 10, FoundWrong()), "cancel below 1 in generation 1 on 1");
  EXPECT_EQ(d.core.installations().installed(WorkerId(0)), 2u);
}

}  // namespace
}  // namespace mu
