#include "common/base/huge_pages.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <string>

namespace mu {
namespace {

using Memory = std::unique_ptr<char, decltype(&std::free)>;

Memory Allocate(size_t bytes) {
  return Memory(static_cast<char*>(AllocateLarge(64, bytes)), std::free);
}

// Whether the kernel was asked for huge pages at this address.
bool IsAdvised(const char* at) {
  std::ifstream maps("/proc/self/smaps");
  bool here = false;
  for (std::string line; std::getline(maps, line);) {
    uint64_t begin = 0, end = 0;
    if (std::sscanf(line.c_str(), "%" SCNx64 "-%" SCNx64 " ", &begin, &end) == 2) {
      const auto address = reinterpret_cast<uintptr_t>(at);
      here = begin <= address && address < end;
    } else if (here && line.rfind("VmFlags:", 0) == 0) {
      return line.find(" hg") != std::string::npos;
    }
  }
  return false;
}

TEST(AllocateLarge, IsAlignedAndOnesOwn) {
  for (const size_t bytes : {size_t{64}, size_t{64} << 10, size_t{5} << 20, size_t{33} << 20}) {
    const Memory memory = Allocate(bytes), other = Allocate(bytes);
    ASSERT_NE(memory, nullptr);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(memory.get()) % 64, 0u);
    std::memset(memory.get(), 1, bytes);
    std::memset(other.get(), 2, bytes);
    EXPECT_EQ(memory.get()[0], 1);
    EXPECT_EQ(memory.get()[bytes - 1], 1);
  }
}

TEST(AllocateLarge, AsksForHugePagesWhereTheyAreWhole) {
  const Memory large = Allocate(size_t{64} << 20);
  if (madvise(nullptr, 0, MADV_HUGEPAGE) != 0) GTEST_SKIP() << "this kernel has none";
  EXPECT_TRUE(IsAdvised(large.get() + (size_t{32} << 20)));
}

}  // namespace
}  // namespace mu
