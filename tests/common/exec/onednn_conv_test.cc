// How oneDNN is used: what it may not do to the process around it.
#include "common/exec/onednn_conv.h"

#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <vector>

#include "common/exec/aligned_buffer.h"
#include "tests/testing/matchers.h"

extern "C" {
int omp_get_max_threads();
void omp_set_num_threads(int threads);
}

namespace mu {
namespace {

int ThreadsOfProcess() {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task")) {
    (void)entry;
    ++count;
  }
  return count;
}

TEST(OnednnConvolution, UsesTheCallingThreadOnly) {
  const int before = omp_get_max_threads();
  omp_set_num_threads(3);
  const int threads = ThreadsOfProcess();
  const Shape images({8, 28, 28, 8});
  const ConvolutionSizes sizes = {MakeWindows(images, 3, 3, 1, 1, true), 8};
  const std::vector<float> x(images.elements(), 1), filter(3 * 3 * 8 * 8, 1);
  std::vector<float> out(images.elements());
  const auto made = OnednnConvolution::Make(ConvolutionPart::kResult, sizes);
  MU_ASSERT_OK(made.status());
  AlignedBuffer scratch;
  MU_ASSERT_OK(
      (*made)->Run(x.data(), filter.data(), out.data(), scratch.Reserve((*made)->scratch_bytes())));
  EXPECT_EQ(out[0], 2 * 2 * 8);                   // in the corner
  EXPECT_EQ(out[(28 * 14 + 14) * 8], 3 * 3 * 8);  // in the middle
  EXPECT_EQ(ThreadsOfProcess(), threads);
  EXPECT_EQ(omp_get_max_threads(), 3) << "the program has its own use of OpenMP";
  omp_set_num_threads(before);
}

// As under systemd's MemoryDenyWriteExecute.
TEST(OnednnConvolution, SaysThatItMayNotWriteCode) {
  constexpr int kSetMdwe = 65, kRefuseExecGain = 1;  // of prctl; headers may be older
  constexpr int kSays = 10, kOther = 11, kWorks = 12, kOldKernel = 13;
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    if (::prctl(kSetMdwe, kRefuseExecGain, 0, 0, 0) != 0) ::_exit(kOldKernel);
    // Sizes for which no other test has had code written.
    const ConvolutionSizes sizes = {MakeWindows(Shape({3, 17, 13, 8}), 3, 3, 1, 1, true), 24};
    const auto made = OnednnConvolution::Make(ConvolutionPart::kResult, sizes);
    if (made.ok()) ::_exit(kWorks);
    const bool says =
        made.status().message().find("make memory executable") != absl::string_view::npos;
    ::_exit(says ? kSays : kOther);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status)) << status;
  if (WEXITSTATUS(status) == kOldKernel) GTEST_SKIP() << "this kernel cannot deny it";
  EXPECT_EQ(WEXITSTATUS(status), kSays);
}

}  // namespace
}  // namespace mu
