#include "coordinator/cli/make_data.h"

#include <algorithm>
#include <cstdio>
#include <memory>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/env/compression.h"
#include "common/env/file.h"
#include "tests/testing/matchers.h"

namespace mu {
namespace {

using ::mu::testing::HasCode;
using ::mu::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class MakeDataTest : public ::testing::Test {
 protected:
  void SetUp() override {
    MU_ASSERT_OK_AND_ASSIGN(root_, MakeTempDirectory("make_data_test"));
    options_.rows = 1000;
    options_.out_dir = JoinPath(root_, "data");
  }
  void TearDown() override { MU_ASSERT_OK(RemoveTree(root_)); }

  static std::string Unpacked(const std::vector<std::string>& files) {
    std::string all, buffer(1 << 16, 0);
    for (const std::string& file : files) {
      const auto stream = OpenUnpacked(file);
      EXPECT_THAT(stream, testing::IsOk());
      if (!stream.ok()) return "";
      while (true) {
        const auto n = (*stream)->Read(buffer.data(), buffer.size());
        EXPECT_THAT(n, testing::IsOk());
        if (!n.ok() || *n == 0) break;
        all.append(buffer, 0, *n);
      }
    }
    return all;
  }
  std::string Sha256(const std::string& text) {
    const std::string path = JoinPath(root_, "hashed");
    RemoveFile(path).IgnoreError();
    EXPECT_THAT(AppendToFile(path, text), testing::IsOk());
    const std::unique_ptr<FILE, int (*)(FILE*)> pipe(
        popen(absl::StrCat("sha256sum ", path).c_str(), "r"), pclose);
    char digits[65] = {};
    if (pipe == nullptr || fread(digits, 1, 64, pipe.get()) != 64) return "sha256sum failed";
    return digits;
  }

  MakeDataOptions options_;
  MakeDataResult result_;
  std::string root_;
};

TEST_F(MakeDataTest, WritesTheRowsOfTheReference) {
  options_.compress = false;
  MU_ASSERT_OK(MakeCriteoData(options_, &result_));
  EXPECT_THAT(result_.files, ElementsAre(JoinPath(options_.out_dir, "train-00000.tsv")));
  EXPECT_EQ(result_.rows, 1000u);
  MU_ASSERT_OK_AND_ASSIGN(const std::string text, ReadFile(result_.files[0]));
  EXPECT_EQ(Sha256(text), "2a55e84159f8a571e6739b333d73a4ca5638deddb9e54b00efb21523b5ec0f02");
  // Clicks are the lines that begin with a 1.
  uint64_t clicks = text[0] == '1';
  for (size_t i = 0; i + 1 < text.size(); ++i) clicks += text[i] == '\n' && text[i + 1] == '1';
  EXPECT_EQ(result_.clicks, clicks);
}

TEST_F(MakeDataTest, TheOracleKnowsWhatItShould) {
  options_.rows = 50'000;
  options_.start = kTestStart;
  MU_ASSERT_OK(MakeCriteoData(options_, &result_));
  EXPECT_NEAR(result_.oracle_auc, 0.8404, 0.00005);
}

TEST_F(MakeDataTest, FilesThreadsAndPackingDoNotChangeTheRows) {
  options_.rows = 9001;
  options_.compress = false;
  options_.threads = 1;
  MU_ASSERT_OK(MakeCriteoData(options_, &result_));
  const std::string expected = Unpacked(result_.files);
  const MakeDataResult first = result_;
  options_.compress = true;
  for (uint32_t files : {1u, 3u}) {
    for (int threads : {1, 3}) {
      options_.files = files;
      options_.threads = threads;
      options_.out_dir = JoinPath(root_, absl::StrCat("data", files));
      MU_ASSERT_OK(MakeCriteoData(options_, &result_));
      EXPECT_EQ(result_.files.size(), files);
      EXPECT_TRUE(Unpacked(result_.files) == expected);
      EXPECT_EQ(result_.clicks, first.clicks);
      EXPECT_EQ(result_.oracle_auc, first.oracle_auc);
      MU_ASSERT_OK_AND_ASSIGN(const auto names, ListDirectory(options_.out_dir));
      EXPECT_EQ(names.size(), files + 1);  // with .about.txt; no temporaries
    }
  }
}

TEST_F(MakeDataTest, AnyRangeCanBeMadeAlone) {
  options_.compress = false;
  MU_ASSERT_OK(MakeCriteoData(options_, &result_));
  const std::string all = Unpacked(result_.files);
  options_.start = 990;
  options_.rows = 10;
  MU_ASSERT_OK(MakeCriteoData(options_, &result_));
  const std::string tail = Unpacked(result_.files);
  EXPECT_EQ(std::count(tail.begin(), tail.end(), '\n'), 10);
  EXPECT_TRUE(absl::EndsWith(all, tail));
  options_.seed = 2;
  MU_ASSERT_OK(MakeCriteoData(options_, &result_));
  EXPECT_NE(Unpacked(result_.files), tail);
}

TEST_F(MakeDataTest, WritesTestRowsBeside) {
  options_.test_rows = 500;
  options_.files = 2;
  MU_ASSERT_OK(MakeCriteoData(options_, &result_));
  EXPECT_THAT(result_.files,
              ElementsAre(HasSubstr("train-00000.tsv.gz"), HasSubstr("train-00001.tsv.gz"),
                          HasSubstr("test.tsv.gz")));
  EXPECT_EQ(result_.rows, 1500u);
  const std::string test = Unpacked({result_.files[2]});
  options_.test_rows = 0;
  options_.start = kTestStart;
  options_.rows = 500;
  options_.out_dir = JoinPath(root_, "other");
  MU_ASSERT_OK(MakeCriteoData(options_, &result_));
  EXPECT_TRUE(Unpacked(result_.files) == test);
}

// deploy/quickstart.sh reads it: what the data is, and what the best guess would reach on it.
TEST_F(MakeDataTest, SaysBesideTheDataWhatItIs) {
  options_.test_rows = 500;
  MU_ASSERT_OK(MakeCriteoData(options_, &result_));
  const std::string about = JoinPath(options_.out_dir, ".about.txt");
  MU_ASSERT_OK_AND_ASSIGN(const std::string first, ReadFile(about));
  EXPECT_EQ(first, "coordinator make-data criteo --rows=1000 --test_rows=500 --seed=1\n" +
                       AboutData(options_, result_));
  EXPECT_THAT(first, HasSubstr("\n1500 rows, "));
  EXPECT_THAT(first, HasSubstr(absl::StrCat(
                         "\nthe oracle, who knows each row's probability, has ",
                         absl::StrFormat("AUC %.4f on test.tsv.gz\n", result_.oracle_auc))));
  // Other rows, other words; never those of before.
  options_.test_rows = 0;
  options_.seed = 2;
  ASSERT_FALSE(MakeCriteoData(options_, &result_).ok()) << "test.tsv.gz would be mixed";
  EXPECT_TRUE(FileExists(about)) << "nothing was changed";
  MU_ASSERT_OK(RemoveFile(JoinPath(options_.out_dir, "test.tsv.gz")));
  MU_ASSERT_OK(MakeCriteoData(options_, &result_));
  MU_ASSERT_OK_AND_ASSIGN(const std::string second, ReadFile(about));
  EXPECT_THAT(second, HasSubstr("--rows=1000 --seed=2\n"));
  EXPECT_THAT(second, HasSubstr(" on these rows\n"));
}

TEST_F(MakeDataTest, DoesNotMixRuns) {
  options_.files = 3;
  MU_ASSERT_OK(MakeCriteoData(options_, &result_));
  MU_ASSERT_OK(MakeCriteoData(options_, &result_));  // the same files are replaced
  options_.files = 2;
  EXPECT_THAT(MakeCriteoData(options_, &result_),
              StatusIs(absl::StatusCode::kAlreadyExists, HasSubstr("train-00002.tsv.gz")));
}

TEST_F(MakeDataTest, RefusesWhatMakesNoSense) {
  const auto refused = [&](auto change) {
    MakeDataOptions options = options_;
    change(&options);
    EXPECT_THAT(MakeCriteoData(options, &result_), HasCode(absl::StatusCode::kInvalidArgument));
  };
  refused([](MakeDataOptions* o) { o->rows = 0; });
  refused([](MakeDataOptions* o) { o->out_dir.clear(); });
  refused([](MakeDataOptions* o) { o->files = 1001; });
  refused([](MakeDataOptions* o) { o->start = ~uint64_t{0}; });
  refused([](MakeDataOptions* o) {
    o->start = kTestStart - 10;
    o->test_rows = 10;
  });
  EXPECT_FALSE(FileExists(options_.out_dir));
}

TEST_F(MakeDataTest, SaysWhereItCannotWrite) {
  MU_ASSERT_OK(AppendToFile(JoinPath(root_, "file"), "x"));
  options_.out_dir = JoinPath(root_, "file/data");
  EXPECT_THAT(MakeCriteoData(options_, &result_),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("file")));
}

}  // namespace
}  // namespace mu
