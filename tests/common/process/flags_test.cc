#include "common/process/flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <CLI/CLI.hpp>
#include <string>

#include "common/base/version.h"

namespace mu {
namespace {

using ::testing::HasSubstr;

TEST(Flags, EachHasAnEnvironmentVariable) {
  EXPECT_EQ(EnvironmentNameOf("worker", "orphan_timeout"), "MUSTER_WORKER_ORPHAN_TIMEOUT");
  EXPECT_EQ(EnvironmentNameOf("coordinator", "take-over"), "MUSTER_COORDINATOR_TAKE_OVER");
  for (const bool on_line : {false, true}) {
    CLI::App app;
    int above = 0, below = 0;
    bool flag = false;
    app.add_option("--above", above)->required();
    CLI::App* const command = app.add_subcommand("command");
    command->add_option("--below,--under", below);
    command->add_flag("--flag", flag);
    FinishFlags(&app, "flagstest");
    setenv("MUSTER_FLAGSTEST_ABOVE", "1", 1);
    setenv("MUSTER_FLAGSTEST_BELOW", "2", 1);
    setenv("MUSTER_FLAGSTEST_FLAG", "true", 1);
    app.parse(on_line ? "--above=3 command --below=4" : "command", false);
    EXPECT_EQ(above, on_line ? 3 : 1);
    EXPECT_EQ(below, on_line ? 4 : 2);
    EXPECT_TRUE(flag);
  }
}

TEST(Flags, NumbersAreFinite) {
  for (const char* text : {"nan", "-nan", "inf", "-inf", "1e999"}) {
    CLI::App app;
    double free = 0, bounded = 0;
    std::vector<double> several;
    app.add_option("--free", free);
    app.add_option("--several", several)->delimiter(',');
    CLI::App* const command = app.add_subcommand("command");
    command->add_option("--bounded", bounded)->check(CLI::Range(0.5, 3600.0));
    FinishFlags(&app, "flagstest");
    for (const std::string flag : {"--free=", "--several=1,", "command --bounded="}) {
      try {
        app.parse(flag + text, false);
        ADD_FAILURE() << flag << text << " is taken";
      } catch (const CLI::ParseError& error) {
        EXPECT_THAT(error.what(), HasSubstr("is no finite number")) << flag << text;
      }
    }
    EXPECT_NO_THROW(app.parse("--free=-1.5 --several=1,2 command --bounded=7", false));
    EXPECT_EQ(free, -1.5);
    EXPECT_EQ(bounded, 7);
  }
}

TEST(Flags, AnEmptyValueDoesNotTakeTheNextFlag) {
  for (const char* empty : {"--columns=", "--name=", "--flag="}) {
    CLI::App app;
    std::vector<std::string> columns;
    std::string name;
    bool flag = false;
    app.add_option("--columns", columns)->delimiter(',');
    app.add_option("--name", name);
    app.add_flag("--flag", flag);
    const char* const words[] = {"program", empty, "--name=x"};
    try {
      ParseFlags(&app, 3, words);
      ADD_FAILURE() << empty << " is taken";
    } catch (const CLI::ParseError& error) {
      EXPECT_THAT(error.what(), HasSubstr("there is no value after `=`")) << empty;
      EXPECT_THAT(error.what(), HasSubstr(empty));
    }
    const char* const good[] = {"program", "--name=x=", "--columns=a,b", "--", "--y="};
    app.allow_extras();
    EXPECT_NO_THROW(ParseFlags(&app, 5, good));
    EXPECT_EQ(name, "x=");
    EXPECT_EQ(columns, (std::vector<std::string>{"a", "b"}));
  }
}

TEST(Flags, TheVersionIsTold) {
  CLI::App app;
  FinishFlags(&app, "worker");
  try {
    app.parse("--version", false);
    FAIL() << "it goes on";
  } catch (const CLI::CallForVersion& version) {
    EXPECT_THAT(version.what(), HasSubstr("worker (Muster) " + Version()));
  }
}

}  // namespace
}  // namespace mu
