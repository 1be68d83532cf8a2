// What a function that waits takes of the coordinator's memory.
#include <malloc.h>

#include <vector>

#include "tests/coordinator/cluster/played_worker.h"

namespace mu {
namespace {

using testing::PlayedClusterTest;

using QueuedMemoryTest = PlayedClusterTest;

TEST_F(QueuedMemoryTest, IsUnderAKilobyte) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer's allocator does not count as glibc's does";
#endif
  constexpr size_t kFunctions = 5000;
  Start(/*in_flight=*/2, /*bound=*/2 * kFunctions);
  std::vector<RemoteValue> values;
  values.reserve(kFunctions);
  (void)Schedule(1);  // what is made once
  const size_t before = mallinfo2().uordblks;
  for (size_t i = 0; i < kFunctions; ++i) values.push_back(Schedule(1));
  ASSERT_EQ(runtime_->Stats().unfinished, kFunctions + 1);
  const size_t each = (mallinfo2().uordblks - before) / kFunctions;
  EXPECT_LT(each, 1024u);
  EXPECT_GT(each, sizeof(FunctionQueue::Function)) << "else this does not count what it should";
  RecordProperty("bytes", static_cast<int>(each));
}

}  // namespace
}  // namespace mu
