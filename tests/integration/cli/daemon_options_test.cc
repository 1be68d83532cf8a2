// Flags of the daemons whose effect is seen only behind all processes.
#include <filesystem>
#include <string>

#include "tests/conformance/conformance.h"
#include "tests/conformance/numbers_file.h"

namespace mu {
namespace {

using testing::Numbers;
using testing::StartCounting;
using testing::StatusIs;

int ThreadsOf(pid_t pid) {
  int threads = 0;
  for (const auto& thread :
       std::filesystem::directory_iterator(absl::StrCat("/proc/", pid, "/task"))) {
    threads += thread.exists() ? 1 : 0;
  }
  return threads;
}

int ThreadsOfAWorker(const std::string& flag) {
  const auto t = StartCounting({.worker_flags = {flag}});
  EXPECT_THAT(t, testing::IsOk());
  return t.ok() ? ThreadsOf(t->cluster->process("worker", 0).pid()) : -1;
}

// What the transport has at any moment differs by a few.
TEST(DaemonOptions, AWorkerReadsAheadWithAsManyThreadsAsItIsTold) {
  const int one = ThreadsOfAWorker("--threads=1"), many = ThreadsOfAWorker("--threads=101");
  EXPECT_GT(many, one + 80);
  EXPECT_LT(many, one + 120);
}

// Adds up the numbers of a packed file.
absl::Status ReadPacked(const std::string& flag) {
  MU_ASSIGN_OR_RETURN(auto t, StartCounting({.worker_flags = {flag}}));
  const std::string file = t.cluster->directory() + "/numbers.csv.gz";
  testing::WriteFile(file, Numbers(0, 4000));
  MU_ASSIGN_OR_RETURN(const Dataset data,
                      t.c().CreateDataset(Csv({file}).Id("id", 0, 0).Batch(40).Epochs(1)));
  MU_ASSIGN_OR_RETURN(const Function add, t.c().DefineFunction("add", [&](FunctionBuilder& f) {
    AssignAdd(t.counter, ReduceSum(f.NextBatch(data)["id"]));
  }));
  t.c().Schedule(add, {.steps = 100});
  MU_RETURN_IF_ERROR(t.c().Join());
  EXPECT_EQ(t.Count(), 3999 * 4000 / 2);
  return absl::OkStatus();
}

TEST(DaemonOptions, AWorkerKeepsNoMoreUnpackedBytesThanItIsTold) {
  MU_EXPECT_OK(ReadPacked("--cache_bytes=1000000"));
  EXPECT_THAT(ReadPacked("--cache_bytes=1000"), StatusIs(absl::StatusCode::kResourceExhausted,
                                                         ::testing::HasSubstr("numbers.csv.gz")));
}

}  // namespace
}  // namespace mu
