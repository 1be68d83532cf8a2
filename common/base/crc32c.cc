#include "common/base/crc32c.h"

#include <nmmintrin.h>

#include <array>
#include <cstring>

namespace mu {
namespace {

// The instruction takes three cycles and one can begin in each, so three lanes are summed at once
// (Gopal et al., Fast CRC Computation for iSCSI Polynomial Using CRC32 Instruction, Intel 2011).
constexpr size_t kLaneBytes = 1024;
constexpr int kLaneBitsLog2 = 13;
static_assert(size_t{1} << kLaneBitsLog2 == kLaneBytes * 8);

// A linear map of sums, which are polynomials over GF(2): what each bit becomes.
using Map = std::array<uint32_t, 32>;

constexpr uint32_t Apply(const Map& map, uint32_t sum) {
  uint32_t result = 0;
  for (; sum != 0; sum &= sum - 1) result ^= map[static_cast<size_t>(__builtin_ctz(sum))];
  return result;
}

// What a sum becomes by a lane of zeros, in a table by each of its bytes.
constexpr std::array<std::array<uint32_t, 256>, 4> LaneOfZeros() {
  Map map{0x82f63b78};  // one bit of zero: a shift, and the polynomial for what falls out
  for (size_t bit = 1; bit < 32; ++bit) map[bit] = uint32_t{1} << (bit - 1);
  for (int doubled = 0; doubled < kLaneBitsLog2; ++doubled) {
    Map twice{};
    for (size_t bit = 0; bit < 32; ++bit) twice[bit] = Apply(map, map[bit]);
    map = twice;
  }
  std::array<std::array<uint32_t, 256>, 4> table{};
  for (size_t byte = 0; byte < 4; ++byte) {
    for (uint32_t value = 0; value < 256; ++value)
      table[byte][value] = Apply(map, value << (8 * byte));
  }
  return table;
}

uint64_t PastALane(uint64_t sum) {
  static constexpr auto kTable = LaneOfZeros();
  return kTable[0][sum & 255] ^ kTable[1][(sum >> 8) & 255] ^ kTable[2][(sum >> 16) & 255] ^
         kTable[3][(sum >> 24) & 255];
}

uint64_t Word(const char* bytes) {
  uint64_t word;
  std::memcpy(&word, bytes, sizeof(word));
  return word;
}

}  // namespace

uint32_t ExtendCrc32c(uint32_t crc, const void* data, size_t size) {
  const char* bytes = static_cast<const char*>(data);
  uint64_t first = static_cast<uint32_t>(~crc);
  for (; size >= 3 * kLaneBytes; bytes += 3 * kLaneBytes, size -= 3 * kLaneBytes) {
    uint64_t second = 0, third = 0;
    for (size_t i = 0; i < kLaneBytes; i += 8) {
      first = _mm_crc32_u64(first, Word(bytes + i));
      second = _mm_crc32_u64(second, Word(bytes + kLaneBytes + i));
      third = _mm_crc32_u64(third, Word(bytes + 2 * kLaneBytes + i));
    }
    first = PastALane(PastALane(first) ^ second) ^ third;
  }
  for (; size >= 8; bytes += 8, size -= 8) first = _mm_crc32_u64(first, Word(bytes));
  for (; size > 0; ++bytes, --size) {
    first = _mm_crc32_u8(static_cast<uint32_t>(first), static_cast<uint8_t>(*bytes));
  }
  return ~static_cast<uint32_t>(first);
}

}  // namespace mu
