// Whether synchronous rounds with a backup go at the speed of the quick workers: rounds a second
// with two workers, and with a third one that is 20 times slower and one backup. The steps wait
// rather than compute, so that the processor is free. Fails below nine tenths.
//
//   build/bin/slow_contributor [SECONDS]   how long each of the two is looked at; 20 without it
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "common/base/steady_now.h"
#include "coordinator/frontend/ops.h"
#include "tests/testing/cluster.h"

namespace mu {
namespace {

constexpr size_t kQueued = 64;

struct Rate {
  double rounds = 0;  // a second
  RoundCounts counts;
};

absl::StatusOr<Rate> Measure(bool with_slow, absl::Duration window) {
  MU_ASSIGN_OR_RETURN(const auto cluster, testing::TestCluster::Start({.workers = 0, .ps = 2}));
  for (int worker = 0; worker < 2; ++worker)
    MU_RETURN_IF_ERROR(cluster->StartWorker(worker, {"--slow_down=20"}));
  if (with_slow) MU_RETURN_IF_ERROR(cluster->StartWorker(2, {"--slow_down=400"}));
  Coordinator& c = cluster->coordinator();
  while (c.Stats().workers_ready < (with_slow ? 3 : 2)) absl::SleepFor(absl::Milliseconds(10));
  MU_RETURN_IF_ERROR(c.SynchronousRounds({.replicas = 2, .backups = with_slow ? 1u : 0u}));
  MU_ASSIGN_OR_RETURN(const Variable sum, c.CreateVariable({.name = "sum", .dtype = kInt64}));
  MU_ASSIGN_OR_RETURN(const Function work, c.DefineFunction("work", [&](FunctionBuilder& f) {
    Sym x =
        ConstantTensor(Tensor::Of<float>(Shape({128, 128}), std::vector<float>(128 * 128, 1e-3f)));
    for (int i = 0; i < 4; ++i) x = MatMul(x, x);
    AssignAdd(sum, 1);
    f.Return("sum", ReduceSum(x));
  }));
  const auto run_for = [&](absl::Duration time) {
    const absl::Time end = SteadyNow() + time;
    while (SteadyNow() < end) {
      while (c.Stats().unfinished < kQueued) c.Schedule(work);
      absl::SleepFor(absl::Milliseconds(5));
    }
  };
  run_for(absl::Seconds(2));  // the slow worker has its first steps
  const uint64_t before = c.Stats().rounds.committed;
  const absl::Time begin = SteadyNow();
  run_for(window);
  Rate rate;
  rate.rounds = static_cast<double>(c.Stats().rounds.committed - before) /
                absl::ToDoubleSeconds(SteadyNow() - begin);
  MU_RETURN_IF_ERROR(c.Join());
  rate.counts = c.Stats().rounds;
  return rate;
}

absl::Status Compare(absl::Duration window) {
  MU_ASSIGN_OR_RETURN(const Rate quick, Measure(/*with_slow=*/false, window));
  MU_ASSIGN_OR_RETURN(const Rate slow, Measure(/*with_slow=*/true, window));
  const double kept = slow.rounds / quick.rounds;
  std::printf(
      "two workers: %.1f rounds/s; one more that is 20 times slower, and a backup: %.1f rounds/s "
      "(%.0f%%), %llu steps came too late\n",
      quick.rounds, slow.rounds, 100 * kept, static_cast<unsigned long long>(slow.counts.late));
  if (slow.counts.late == 0) return absl::InternalError("the slow worker was never asked");
  return kept >= 0.9 ? absl::OkStatus() : absl::InternalError("the slow worker held rounds up");
}

}  // namespace
}  // namespace mu

int main(int argc, char** argv) {
  const absl::Status status =
      mu::Compare(absl::Seconds(argc > 1 ? std::max(1, std::atoi(argv[1])) : 20));
  if (!status.ok()) std::fprintf(stderr, "%s\n", std::string(status.message()).c_str());
  return status.ok() ? 0 : 1;
}
