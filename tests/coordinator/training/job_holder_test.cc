#include "coordinator/training/job_holder.h"

#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "common/env/host_name.h"
#include "tests/testing/matchers.h"

namespace mu {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::StatusIs;

constexpr absl::StatusCode kRefused = absl::StatusCode::kInvalidArgument;

JobHolder Holder() {
  return {.job = 7, .pid = 4711, .host = "node-3", .since = "2026-11-23T02:20:00Z"};
}

TEST(JobHolder, IsReadAsWritten) {
  const JobHolder read = ParseJobHolder(ToText(Holder()));
  EXPECT_EQ(read.job, 7u);
  EXPECT_EQ(read.pid, 4711);
  EXPECT_EQ(read.host, "node-3");
  EXPECT_EQ(read.since, "2026-11-23T02:20:00Z");
}

TEST(JobHolder, NamesThisProcess) {
  const JobHolder self = ParseJobHolder(ToText(ThisHolder(7)));
  EXPECT_EQ(self.job, 7u);
  EXPECT_EQ(HolderName(self),
            absl::StrCat("a coordinator (process ", ::getpid(), " on ", HostName(), ")"));
  EXPECT_THAT(self.since, ::testing::EndsWith("Z"));
  EXPECT_EQ(HolderName({}), "a coordinator");
}

TEST(JobHolder, WhatCannotBeReadIsNotKnown) {
  for (const char* text : {"", "\n", "123456\n", "job: many\npid: -\nhost", ": \n: x"}) {
    const JobHolder read = ParseJobHolder(text);
    EXPECT_EQ(read.job, 0u) << text;
    EXPECT_EQ(read.pid, 0) << text;
    EXPECT_EQ(read.host, "") << text;
    EXPECT_EQ(read.since, "") << text;
  }
}

TEST(JobHolder, IsReplacedOnlyWhenThatIsAskedFor) {
  EXPECT_THAT(MayReplace(Holder(), 7, false, "/jobs/a"),
              StatusIs(kRefused, AllOf(HasSubstr("(process 4711 on node-3) is training this job in "
                                                 "/jobs/a since 2026-11-23T02:20:00Z"),
                                       HasSubstr("choose another job_dir"),
                                       HasSubstr("--take_over replaces it"))));
  MU_EXPECT_OK(MayReplace(Holder(), 7, true, "/jobs/a"));
}

TEST(JobHolder, IsNeverReplacedByAnotherJob) {
  for (const bool take_over : {false, true}) {
    EXPECT_THAT(
        MayReplace(Holder(), 8, take_over, "/jobs/a"),
        StatusIs(kRefused, AllOf(HasSubstr("training another job"), Not(HasSubstr("take_over")))));
  }
}

// The moment between the lock and its text.
TEST(JobHolder, ThatIsNotKnownIsRefusedOrReplacedAsWell) {
  EXPECT_THAT(MayReplace({}, 7, false, "/jobs/a"),
              StatusIs(kRefused, HasSubstr("a coordinator is training this job in /jobs/a; wait")));
  MU_EXPECT_OK(MayReplace({}, 7, true, "/jobs/a"));
}

}  // namespace
}  // namespace mu
