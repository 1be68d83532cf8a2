#include "coordinator/training/server_notes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace mu {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

MemberFailure Failure(pb::Role role, const std::string& kind) {
  return {{}, role, 1, kind, 12.34, "killed by signal 9"};
}
MemberFailure Recovered(MemberFailure failure, uint64_t steps) {
  failure.recovered_seconds = 0.42;
  failure.steps_repeated = steps;
  return failure;
}

TEST(ServerNotes, ALossAndWhatItHasCost) {
  MemberFailure failure = Failure(pb::ROLE_PSSERVER, "died");
  EXPECT_EQ(NoteOfLoss(failure),
            "psserver 1 was lost (died) after 12.3 s; training waits until it is replaced");
  EXPECT_THAT(NoteOfRecovery(failure), IsEmpty());
  failure.message = "killed by signal 9; restored from initial values";
  failure = Recovered(failure, 1193);
  EXPECT_THAT(NoteOfLoss(failure), IsEmpty()) << "the other note says it";
  const std::string note = NoteOfRecovery(failure);
  EXPECT_EQ(note,
            "psserver 1 was lost (died) after 12.3 s and replaced 0.4 s later, restored from "
            "initial values; 1193 steps run again");
  failure.message += "; psserver-1 (pid 7) ended: signal 9; its last lines in LOG:\n(none)";
  EXPECT_EQ(NoteOfRecovery(failure), note) << "how it ended is in the report";
}

TEST(ServerNotes, WhatOtherServersCost) {
  EXPECT_EQ(NoteOfRecovery(Recovered(Failure(pb::ROLE_PSSERVER, "silent"), 0)),
            "psserver 1 was lost (silent) after 12.3 s and replaced 0.4 s later");
  EXPECT_THAT(NoteOfRecovery(Recovered(Failure(pb::ROLE_PSSERVER, "silent"), 1)),
              HasSubstr("; 1 step runs again"));
}

TEST(ServerNotes, WhatHoldsUpNothing) {
  EXPECT_THAT(NoteOfLoss(Failure(pb::ROLE_WORKER, "died")), IsEmpty());
  EXPECT_THAT(NoteOfRecovery(Recovered(Failure(pb::ROLE_WORKER, "died"), 7)), IsEmpty());
  const MemberFailure left = Failure(pb::ROLE_PSSERVER, "left");
  EXPECT_THAT(NoteOfLoss(left), IsEmpty());
  EXPECT_THAT(NoteOfRecovery(Recovered(left, 0)), IsEmpty());
  EXPECT_THAT(NoteOfRecovery(Recovered(left, 7)), HasSubstr("7 steps run again"));
}

}  // namespace
}  // namespace mu
