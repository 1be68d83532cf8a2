// How oneDNN is used: what it may not do to the process around it.
#include "common/exec/onednn_conv.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace mu
