#include "coordinator/cli/scalar.h"

#include <gtest/gtest.h>

#include "common/base/status.h"
#include "coordinator/cli/problem_list.h"
#include "tests/testing/matchers.h"

namespace mu {
namespace {

TEST(ScalarTest, AcceptsWhatAJobMayWrite) {
  EXPECT_EQ(*ParseInt("-9223372036854775808"), INT64_MIN);
  EXPECT_EQ(*ParseInt("+5"), 5);
  EXPECT_EQ(*ParseInt("0"), 0);
  EXPECT_EQ(*ParseUint("18446744073709551615"), UINT64_MAX);
  EXPECT_EQ(*ParseDouble("-1.5e3"), -1500);
  EXPECT_EQ(*ParseDouble(".5"), 0.5);
  EXPECT_EQ(*ParseDouble("5."), 5);
  EXPECT_EQ(*ParseFloat("0e-99"), 0);
  EXPECT_EQ(*ParseFloat("3.4e38"), 3.4e38f);
  EXPECT_TRUE(*ParseBool("true"));
}

TEST(ScalarTest, RefusesTheRest) {
  for (const char* text :
       {"", "-", "0x10", "1_000", "1.0", "1e3", "08", "9223372036854775808", "1 ", "a"}) {
    EXPECT_FALSE(ParseInt(text).ok()) << text;
  }
  EXPECT_FALSE(ParseUint("-1").ok());
  EXPECT_FALSE(ParseUint("18446744073709551616").ok());
  for (const char* text :
       {"", ".", "e5", "1e", "1e+", "nan", ".inf", "0x1p3", "1e999", "1,5", "--1"}) {
    EXPECT_FALSE(ParseDouble(text).ok()) << text;
    EXPECT_FALSE(ParseFloat(text).ok()) << text;
  }
  for (const char* text : {"yes", "no", "on", "True", "1", ""})
    EXPECT_FALSE(ParseBool(text).ok()) << text;
}

TEST(ProblemListTest, SortsWithinASourceAndBecomesAUsersError) {
  ProblemList problems;
  MU_EXPECT_OK(problems.ToStatus());
  problems.Add({"b.yaml", 3, 1}, "third", "mend it");
  problems.Add({"--set x"}, "flag");
  problems.Add({"b.yaml", 1, 9}, "second");
  problems.Add({"b.yaml", 1, 2}, "first");
  EXPECT_EQ(problems.ToString(),
            "b.yaml:1:2: first\nb.yaml:1:9: second\nb.yaml:3:1: third; mend it\n--set x: flag\n");
  EXPECT_EQ(problems.ToStatus().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(KindOf(problems.ToStatus()), muster::ERROR_USER);
}

}  // namespace
}  // namespace mu
