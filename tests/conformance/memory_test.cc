// The memory of every process is flat over 100,000 functions, with checkpoints on the way and
// without, with data, a table and returned values and without.
//
// What is measured is anonymous resident memory (RssAnon): the heap and stacks, without files and
// shared libraries. The allocator keeps what it once had, so a moment of many things at once (a
// checkpoint that the disk holds up) shows as a step that stays. A leak shows in every interval:
// the median of what 5,000 functions add may be no more than 100 kB, 20 bytes a function, less than
// any node of a map or a string on the heap takes. Undisturbed it is 0 to 20 kB. All steps together
// may make no more than the second bound.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>

#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "coordinator/launch/launch.h"
#include "coordinator/training/checkpointer.h"
#include "tests/conformance/conformance.h"
#include "tests/conformance/numbers_file.h"

namespace mu {
namespace {

constexpr int kFunctions = 100'000, kWarmUp = 20'000, kBetween = 5'000;
constexpr int64_t kMostTypicalKb = 100, kMostInAllKb = 16 * 1024;

int64_t AnonymousKb(int64_t pid) {
  const auto status = ReadFile(absl::StrCat("/proc/", pid, "/status"));
  int64_t kb = -1;
  for (const absl::string_view line : absl::StrSplit(status.value_or(""), '\n')) {
    const std::vector<absl::string_view> words =
        absl::StrSplit(line, absl::ByAnyChar("\t "), absl::SkipEmpty());
    if (words.size() < 2 || words[0] != "RssAnon:") continue;
    EXPECT_TRUE(absl::SimpleAtoi(words[1], &kb));
  }
  EXPECT_GT(kb, 0) << "process " << pid << " is gone, or has no RssAnon";
  return kb;
}

class Samples {
 public:
  explicit Samples(Coordinator& c) : c_(c) {}

  void Take() {
    const pb::GetStatusReply status = c_.runtime().Status();
    for (const pb::MemberStatus& member : status.members()) {
      kb_[absl::StrCat(pb::Role_Name(member.role()), " ", member.index())].push_back(
          AnonymousKb(member.pid()));
    }
    kb_["coordinator"].push_back(AnonymousKb(getpid()));
  }
  // Between two samples, typically, and from the first to the last.
  void ExpectGrowthWithin(int64_t most_typical_kb, int64_t most_in_all_kb) const {
    ASSERT_EQ(kb_.size(), 5u);
    for (const auto& [process, kb] : kb_) {
      std::vector<int64_t> growth;
      for (size_t i = 1; i < kb.size(); ++i) growth.push_back(kb[i] - kb[i - 1]);
      std::nth_element(growth.begin(), growth.begin() + growth.size() / 2, growth.end());
      const int64_t typical = growth[growth.size() / 2], in_all = kb.back() - kb.front();
      std::printf("%s: %ld kB in %d functions, %+ld kB in all; kB:%s\n", process.c_str(),
                  static_cast<long>(typical), kBetween, static_cast<long>(in_all),
                  absl::StrJoin(kb, " ").c_str());
      EXPECT_LE(typical, most_typical_kb) << process;
      EXPECT_LE(in_all, most_in_all_kb) << process;
    }
  }

 private:
  Coordinator& c_;
  std::map<std::string, std::vector<int64_t>> kb_;
};

absl::StatusOr<std::unique_ptr<Coordinator>> StartCluster(const TempDirectory& directory) {
  return Local({.workers = 2,
                .ps = 2,
                .job_dir = directory.path(),
                .binary_dir = testing::BinaryDirectory()});
}

// A function that reads `records` numbers again and again, 4 a step, looks them up in a table,
// changes the rows and returns a value.
absl::StatusOr<Function> DefineTraining(Coordinator& c, const Variable& counter,
                                        const std::string& directory, int steps) {
  constexpr int kRecords = 4000, kBatch = 4;
  const std::string file = directory + "/numbers.csv";
  testing::WriteFile(file, testing::Numbers(0, kRecords));
  MU_ASSIGN_OR_RETURN(const Dataset data, c.CreateDataset(Csv({file})
                                                              .Id("id", 0, 0)
                                                              .Batch(kBatch)
                                                              .BlockRecords(100)
                                                              .Shuffle(500)
                                                              .Epochs(static_cast<uint32_t>(steps) *
                                                                      kBatch / kRecords)));
  MU_ASSIGN_OR_RETURN(const EmbeddingTable table,
                      c.CreateEmbeddingTable({.name = "table",
                                              .rows = kRecords,
                                              .dim = 8,
                                              .optimizer = Adagrad{.learning_rate = 0.01f}}));
  return c.DefineFunction("train", [&](FunctionBuilder& f) {
    const Sym id = f.NextBatch(data)["id"];
    const Sym loss = ReduceMean(Square(EmbeddingLookup(table, id) - 1.0f));
    f.Minimize(loss);
    AssignAdd(counter, ConstantTensor(Tensor::Of<int64_t>(Shape({2}), {1, 1})));
    f.Return("loss", loss);
    f.Return("ids", id);
  });
}

// Runs them and samples on the way, after two checkpoints if there is a checkpointer. They only
// count; with a `data_directory` they train.
void RunFunctions(Coordinator& c, int functions, Checkpointer* checkpointer, Samples* samples,
                  const std::string& data_directory = "") {
  MU_ASSERT_OK_AND_ASSIGN(const Variable counter,
                          c.CreateVariable({.name = "counter",
                                            .shape = Shape({2}),
                                            .dtype = kInt64,
                                            .partitioner = FixedShards{2}}));
  MU_ASSERT_OK_AND_ASSIGN(
      const Function function,
      data_directory.empty()
          ? c.DefineFunction(
                "count",
                [&](FunctionBuilder&) {
                  AssignAdd(counter, ConstantTensor(Tensor::Of<int64_t>(Shape({2}), {1, 1})));
                })
          : DefineTraining(c, counter, data_directory, functions));
  for (int i = 1; i <= functions; ++i) {
    const RemoteValue value = c.Schedule(function);
    if (i % 1000 != 0) continue;
    MU_ASSERT_OK(c.Join());
    MU_ASSERT_OK(value.Fetch());
    if (i % kBetween != 0) continue;
    // What finished functions need until two checkpoints hold them is no leak.
    for (int k = 0; k < 2 && checkpointer != nullptr; ++k) MU_ASSERT_OK(checkpointer->TakeNow());
    if (i >= kWarmUp) samples->Take();
  }
  MU_ASSERT_OK_AND_ASSIGN(const Tensor counted, c.Read(counter));
  EXPECT_THAT(counted.flat<int64_t>(), ::testing::Each(functions));
  EXPECT_EQ(c.Stats().functions, static_cast<uint64_t>(functions));
}

struct Case {
  const char* name;
  bool recovers;
  absl::Duration every;  // between checkpoints
  bool trains = false;   // reads data and changes a table
};

class MemoryTest : public ::testing::TestWithParam<Case> {};

TEST_P(MemoryTest, IsFlatOver100000Functions) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "AddressSanitizer keeps memory of its own";
#endif
  MU_ASSERT_OK_AND_ASSIGN(const TempDirectory directory, TempDirectory::Create("muster-memory"));
  MU_ASSERT_OK_AND_ASSIGN(const auto c, StartCluster(directory));
  std::unique_ptr<Checkpointer> checkpointer;
  if (GetParam().recovers) {
    checkpointer = std::make_unique<Checkpointer>(
        c.get(), CheckpointerOptions{.directory = directory.path() + "/checkpoints",
                                     .every = GetParam().every});
  }
  Samples samples(*c);
  RunFunctions(*c, kFunctions, checkpointer.get(), &samples,
               GetParam().trains ? directory.path() : "");
  samples.ExpectGrowthWithin(kMostTypicalKb, kMostInAllKb);
}

// The price of recovery without a checkpoint, which docs/fault_tolerance.md names.
TEST(MemoryWithoutACheckpoint, IsAFewWordsAFunction) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "AddressSanitizer keeps memory of its own";
#endif
  constexpr int kEnough = 40'000;
  constexpr int64_t kMostBytesOfAFunction = 400, kBytesOfKb = 1024;
  MU_ASSERT_OK_AND_ASSIGN(const TempDirectory directory, TempDirectory::Create("muster-memory"));
  MU_ASSERT_OK_AND_ASSIGN(const auto c, StartCluster(directory));
  c->EnableRecovery(directory.path() + "/checkpoints");
  Samples samples(*c);
  RunFunctions(*c, kEnough, nullptr, &samples);
  samples.ExpectGrowthWithin(kMostBytesOfAFunction * kBetween / kBytesOfKb,
                             kMostBytesOfAFunction * kEnough / kBytesOfKb);
}

INSTANTIATE_TEST_SUITE_P(Conformance, MemoryTest,
                         ::testing::Values(Case{"WithoutRecovery", false, absl::InfiniteDuration()},
                                           Case{"WithCheckpoints", true, absl::Seconds(1)},
                                           Case{"Training", true, absl::Seconds(1), true}),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace mu
