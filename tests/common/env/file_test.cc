#include "common/env/file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <thread>
#include <vector>

#include "common/env/clock.h"
#include "tests/testing/matchers.h"

namespace mu {
namespace {

using ::mu::testing::HasCode;
using ::mu::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class FileTest : public ::testing::Test {
 protected:
  void SetUp() override { MU_ASSERT_OK_AND_ASSIGN(root_, MakeTempDirectory("file_test")); }
  void TearDown() override { MU_ASSERT_OK(RemoveTree(root_)); }
  std::string Path(absl::string_view name) const { return JoinPath(root_, name); }
  std::string root_;
};

TEST_F(FileTest, ReadsWhatWasWritten) {
  for (size_t size : {0, 1, 4095, 4096, 1'000'000}) {
    const std::string contents(size, 'x');
    MU_ASSERT_OK(WriteFileAtomic(Path("f"), contents));
    MU_ASSERT_OK_AND_ASSIGN(const std::string read, ReadFile(Path("f")));
    EXPECT_EQ(read, contents);
    MU_ASSERT_OK_AND_ASSIGN(const uint64_t stored, FileSize(Path("f")));
    EXPECT_EQ(stored, size);
  }
  MU_ASSERT_OK_AND_ASSIGN(const auto names, ListDirectory(root_));
  EXPECT_THAT(names, ElementsAre("f"));  // no temporary is left
}

TEST_F(FileTest, ReadsFilesWithoutASize) {
  MU_ASSERT_OK_AND_ASSIGN(const std::string text, ReadFile("/proc/self/status"));
  EXPECT_THAT(text, HasSubstr("Pid:"));
}

TEST_F(FileTest, NamesThePathInErrors) {
  EXPECT_THAT(ReadFile(Path("none")), StatusIs(absl::StatusCode::kNotFound, HasSubstr("none")));
  EXPECT_THAT(ReadFile(root_), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(root_)));
  EXPECT_THAT(ListDirectory(Path("none")), HasCode(absl::StatusCode::kNotFound));
  EXPECT_THAT(RemoveFile(Path("none")), HasCode(absl::StatusCode::kNotFound));
  MU_ASSERT_OK(WriteFileAtomic(Path("f"), "x"));
  EXPECT_THAT(MakeDirectories(Path("f/sub")), HasCode(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(WriteFileAtomic(Path("none/f"), "x"), HasCode(absl::StatusCode::kNotFound));
}

TEST_F(FileTest, AFailedAtomicWriteKeepsTheOldContents) {
  MU_ASSERT_OK(MakeDirectories(Path("target")));
  MU_ASSERT_OK(WriteFileAtomic(Path("target/inner"), "old"));
  EXPECT_FALSE(WriteFileAtomic(Path("target"), "new").ok());  // a directory is in the way
  MU_ASSERT_OK_AND_ASSIGN(const auto names, ListDirectory(root_));
  EXPECT_THAT(names, ElementsAre("target"));
}

TEST_F(FileTest, OneOfManyCreatesExclusively) {
  std::atomic<int> winners{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&, i] {
      const absl::Status status = CreateFileExclusive(Path("claim"), std::to_string(i));
      if (status.ok()) {
        ++winners;
      } else {
        EXPECT_THAT(status, HasCode(absl::StatusCode::kAlreadyExists));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(winners, 1);
}

TEST_F(FileTest, Appends) {
  MU_ASSERT_OK(AppendToFile(Path("log"), "a"));
  MU_ASSERT_OK(AppendToFile(Path("log"), "b"));
  MU_ASSERT_OK_AND_ASSIGN(const std::string text, ReadFile(Path("log")));
  EXPECT_EQ(text, "ab");
}

TEST_F(FileTest, MakesListsAndRemovesTrees) {
  MU_ASSERT_OK(MakeDirectories(Path("a/b/c")));
  MU_ASSERT_OK(MakeDirectories(Path("a/b/c")));
  MU_ASSERT_OK(WriteFileAtomic(Path("a/z"), ""));
  MU_ASSERT_OK(WriteFileAtomic(Path("a/y"), ""));
  MU_ASSERT_OK_AND_ASSIGN(const auto names, ListDirectory(Path("a")));
  EXPECT_THAT(names, ElementsAre("b", "y", "z"));
  MU_ASSERT_OK(WriteFileAtomic(Path("kept"), "x"));
  ASSERT_EQ(symlink(Path("kept").c_str(), Path("a/link").c_str()), 0);
  MU_ASSERT_OK(RemoveTree(Path("a")));
  EXPECT_FALSE(FileExists(Path("a")));
  EXPECT_TRUE(FileExists(Path("kept")));  // links are not followed
  MU_ASSERT_OK(RemoveTree(Path("a")));
}

TEST_F(FileTest, TemporaryDirectoriesGoAway) {
  std::string path;
  {
    MU_ASSERT_OK_AND_ASSIGN(TempDirectory directory, TempDirectory::Create("muster"));
    path = directory.path();
    EXPECT_TRUE(DirectoryExists(path));
    MU_ASSERT_OK(WriteFileAtomic(JoinPath(path, "f"), "x"));
  }
  EXPECT_FALSE(FileExists(path));
}

TEST(PathTest, SplitsAndJoins) {
  EXPECT_EQ(JoinPath("a", "b"), "a/b");
  EXPECT_EQ(JoinPath("a/", "b"), "a/b");
  EXPECT_EQ(JoinPath("a", "/b"), "/b");
  EXPECT_EQ(JoinPath("", "b"), "b");
  EXPECT_EQ(DirectoryOf("a/b"), "a");
  EXPECT_EQ(DirectoryOf("b"), ".");
  EXPECT_EQ(DirectoryOf("/b"), "/");
  EXPECT_EQ(DirectoryOf("/a//b/"), "/a");
  EXPECT_EQ(BaseName("a/b"), "b");
  EXPECT_EQ(BaseName("a/b/"), "b");
  EXPECT_EQ(BaseName("/"), "/");
}

TEST(PathTest, TwoWaysToWriteOnePathAreTheSameAbsoluteOne) {
  MU_ASSERT_OK_AND_ASSIGN(TempDirectory directory, TempDirectory::Create("muster"));
  const std::string& path = directory.path();
  MU_ASSERT_OK(MakeDirectories(path + "/a/b"));
  ASSERT_EQ(symlink((path + "/a/b").c_str(), (path + "/link").c_str()), 0);
  const auto absolute = [&](const std::string& end) {
    return AbsolutePath(path + end).value_or("");
  };
  for (const char* end : {"/a/c", "/a/c/", "//a/./c", "/a/b/../c", "/./a/b/.././c/."})
    EXPECT_EQ(absolute(end), path + "/a/c");
  EXPECT_EQ(absolute("/link/../c"), path + "/link/../c") << "that is a/c";
  EXPECT_EQ(absolute("/link/../../c"), path + "/link/../../c");
  EXPECT_EQ(absolute("/none/../c"), path + "/none/../c");
  EXPECT_EQ(AbsolutePath("/").value_or(""), "/");
  EXPECT_EQ(AbsolutePath("/../x/..").value_or(""), FileExists("/x") ? "/" : "/x/..");
  MU_ASSERT_OK_AND_ASSIGN(const std::string here, AbsolutePath("."));
  EXPECT_EQ(AbsolutePath("x").value_or(""), JoinPath(here, "x"));
  EXPECT_EQ(AbsolutePath("./x/").value_or(""), JoinPath(here, "x"));
}

TEST(ClockTest, ManualClockStandsStill) {
  ManualClock clock(5);
  EXPECT_EQ(clock.Now(), 5);
  clock.Advance(absl::Microseconds(2));
  EXPECT_EQ(clock.Now(), 2005);
}

TEST(ClockTest, RealClockDoesNotGoBack) {
  const int64_t before = Clock::Real()->Now();
  EXPECT_GT(before, 0);
  EXPECT_GE(Clock::Real()->Now(), before);
}

}  // namespace
}  // namespace mu
