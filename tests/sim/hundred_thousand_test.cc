// A hundred thousand histories; ten million by hand: build/tests/cluster_sim --seeds=10000000
// --threads=2.
#include <algorithm>
#include <thread>

#include "tests/sim/expect.h"

namespace mu::sim {
namespace {

TEST(Simulation, HundredThousandHistories) {
  ExpectHolds("everything", 100000,
              static_cast<int>(std::max(1u, std::thread::hardware_concurrency())));
}

}  // namespace
}  // namespace mu::sim
