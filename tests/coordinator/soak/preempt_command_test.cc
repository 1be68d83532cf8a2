#include "coordinator/soak/preempt_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/env/file.h"
#include "tests/testing/matchers.h"
#include "tests/testing/wait.h"

namespace mu {
namespace {

using ::testing::ElementsAre;
using testing::Eventually;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using testing::StatusIs;
using ::testing::UnorderedElementsAre;

class PreemptCommandTest : public ::testing::Test {
 protected:
  void SetUp() override {
    MU_ASSERT_OK_AND_ASSIGN(TempDirectory made, TempDirectory::Create("preempt"));
    directory_ = std::make_unique<TempDirectory>(std::move(made));
  }
  std::string File() const { return JoinPath(directory_->path(), "calls"); }
  // What commands have written, line by line.
  std::vector<std::string> Lines() const {
    return absl::StrSplit(ReadFile(File()).value_or(""), '\n', absl::SkipEmpty());
  }
  // Of a command that writes a line.
  std::string Write(const std::string& line) const {
    return absl::StrCat("echo \"", line, "\" >> '", File(), "'");
  }

  std::unique_ptr<TempDirectory> directory_;
};

TEST_F(PreemptCommandTest, RunsForEachFault) {
  MU_ASSERT_OK_AND_ASSIGN(
      const auto preempting,
      PreemptCommand::Start(Write("$MUSTER_ROLE $MUSTER_ACTION $MUSTER_CHOICE"),
                            "worker:kill:every=5ms:count=1,ps:drain:every=5ms:count=1,"
                            "worker:hang:every=5ms:count=1"));
  EXPECT_TRUE(Eventually([&] { return Lines().size() == 3; }));
  EXPECT_THAT(Lines(), UnorderedElementsAre(MatchesRegex("worker kill [0-9]+"),
                                            MatchesRegex("psserver drain [0-9]+"),
                                            MatchesRegex("worker hang [0-9]+")));
}

// A script that preempts may have been started by one that has these variables.
TEST_F(PreemptCommandTest, WhatIsSetAroundItDoesNotMatter) {
  ASSERT_EQ(setenv("MUSTER_ROLE", "other", 1), 0);
  MU_ASSERT_OK_AND_ASSIGN(auto preempting, PreemptCommand::Start(Write("$MUSTER_ROLE"),
                                                                 "worker:kill:every=5ms:count=1"));
  EXPECT_TRUE(Eventually([&] { return Lines().size() == 1; }));
  preempting = nullptr;
  unsetenv("MUSTER_ROLE");
  EXPECT_THAT(Lines(), ElementsAre("worker"));
}

TEST_F(PreemptCommandTest, OneThatFailsEndsNothing) {
  MU_ASSERT_OK_AND_ASSIGN(const auto preempting,
                          PreemptCommand::Start(absl::StrCat(Write("called"), "; exit 3"),
                                                "worker:kill:every=5ms:count=2"));
  EXPECT_TRUE(Eventually([&] { return Lines().size() == 2; }));
}

// Faults come faster than commands end: if all that are due were waited for, there were no end.
TEST_F(PreemptCommandTest, ItsEndWaitsForACommandAndBeginsNoOther) {
  MU_ASSERT_OK_AND_ASSIGN(
      auto preempting,
      PreemptCommand::Start(absl::StrCat(Write("begins"), "; sleep 0.3; ", Write("ends")),
                            "worker:kill:every=1ms"));
  EXPECT_TRUE(Eventually([&] { return !Lines().empty(); }));
  preempting = nullptr;
  const std::vector<std::string> lines = Lines();
  ASSERT_EQ(lines.size() % 2, 0u) << "a command was cut off";
  EXPECT_EQ(lines.back(), "ends");
}

TEST_F(PreemptCommandTest, WithoutFaultsRunsNothing) {
  MU_EXPECT_OK(PreemptCommand::Start("", "").status());
  MU_EXPECT_OK(PreemptCommand::Start(Write("called"), "").status());
  EXPECT_THAT(Lines(), ElementsAre());
}

TEST_F(PreemptCommandTest, WrongFaultsAreNamed) {
  EXPECT_THAT(PreemptCommand::Start("true", "worker:eat:every=1s"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("`eat`")));
  EXPECT_THAT(PreemptCommand::Start("", "worker:kill:every=1s"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("no command")));
}

}  // namespace
}  // namespace mu
