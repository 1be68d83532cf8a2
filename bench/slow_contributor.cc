// Whether synchronous rounds with a backup go at the speed of the quick workers: rounds a second
// with two workers, and with a third one that is 20 times slower and one backup. The steps wait
// rather than compute, so that the processor is free. Both clusters live at the same time and are
// looked at in turn, so that a machine that becomes slower is slower for both. Prints each turn and
// the median; fails if the median is below nine tenths.
//
//   build/bin/slow_contributor [SECONDS] [TURNS]   how long each look takes, 10 without it, and how
//                                                  often each is looked at, 7 without it
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "common/base/steady_now.h"
#include "coordinator/frontend/ops.h"
#include "tests/testing/cluster.h"

namespace mu {
namespace {

constexpr size_t kQueued = 64;

class Contest {
 public:
  static absl::StatusOr<std::unique_ptr<Contest>> Start(bool with_slow) {
    auto contest = std::make_unique<Contest>();
    MU_ASSIGN_OR_RETURN(contest->cluster_, testing::TestCluster::Start({.workers = 0, .ps = 2}));
    for (int worker = 0; worker < 2; ++worker)
      MU_RETURN_IF_ERROR(contest->cluster_->StartWorker(worker, {"--slow_down=20"}));
    if (with_slow) MU_RETURN_IF_ERROR(contest->cluster_->StartWorker(2, {"--slow_down=400"}));
    Coordinator& c = contest->cluster_->coordinator();
    while (c.Stats().workers_ready < (with_slow ? 3 : 2)) absl::SleepFor(absl::Milliseconds(10));
    MU_RETURN_IF_ERROR(c.SynchronousRounds({.replicas = 2, .backups = with_slow ? 1u : 0u}));
    MU_ASSIGN_OR_RETURN(const Variable sum, c.CreateVariable({.name = "sum", .dtype = kInt64}));
    MU_ASSIGN_OR_RETURN(contest->work_, c.DefineFunction("work", [&](FunctionBuilder& f) {
      Sym x = ConstantTensor(
          Tensor::Of<float>(Shape({128, 128}), std::vector<float>(128 * 128, 1e-3f)));
      for (int i = 0; i < 4; ++i) x = MatMul(x, x);
      AssignAdd(sum, 1);
      f.Return("sum", ReduceSum(x));
    }));
    return contest;
  }

  // Rounds a second, while functions are always there to be run. At its end none is.
  absl::StatusOr<double> Rounds(absl::Duration window) {
    Coordinator& c = cluster_->coordinator();
    RunFor(absl::Seconds(2));  // the slow worker has its first steps
    const uint64_t before = c.Stats().rounds.committed;
    const absl::Time begin = SteadyNow();
    RunFor(window);
    const double rounds = static_cast<double>(c.Stats().rounds.committed - before) /
                          absl::ToDoubleSeconds(SteadyNow() - begin);
    MU_RETURN_IF_ERROR(c.Join());
    return rounds;
  }

  RoundCounts Counts() { return cluster_->coordinator().Stats().rounds; }

 private:
  void RunFor(absl::Duration time) {
    Coordinator& c = cluster_->coordinator();
    const absl::Time end = SteadyNow() + time;
    while (SteadyNow() < end) {
      while (c.Stats().unfinished < kQueued) c.Schedule(work_);
      absl::SleepFor(absl::Milliseconds(5));
    }
  }

  std::unique_ptr<testing::TestCluster> cluster_;
  Function work_;
};

absl::Status Compare(absl::Duration window, int turns) {
  MU_ASSIGN_OR_RETURN(const auto quick, Contest::Start(/*with_slow=*/false));
  MU_ASSIGN_OR_RETURN(const auto slow, Contest::Start(/*with_slow=*/true));
  std::vector<double> kept;
  for (int turn = 0; turn < turns; ++turn) {
    MU_ASSIGN_OR_RETURN(const double without, quick->Rounds(window));
    MU_ASSIGN_OR_RETURN(const double with, slow->Rounds(window));
    kept.push_back(with / without);
    std::printf(
        "two workers: %.1f rounds/s; one more that is 20 times slower, and a backup: %.1f "
        "rounds/s (%.0f%%)\n",
        without, with, 100 * kept.back());
    std::fflush(stdout);
  }
  std::sort(kept.begin(), kept.end());
  const double median = kept[kept.size() / 2];
  const RoundCounts counts = slow->Counts();
  std::printf("median: %.0f%%; %llu steps came too late in %llu rounds\n", 100 * median,
              static_cast<unsigned long long>(counts.late),
              static_cast<unsigned long long>(counts.committed));
  if (counts.late == 0) return absl::InternalError("the slow worker was never asked");
  return median >= 0.9 ? absl::OkStatus() : absl::InternalError("the slow worker held rounds up");
}

}  // namespace
}  // namespace mu

int main(int argc, char** argv) {
  const auto argument = [&](int i, int otherwise) {
    return argc > i ? std::max(1, std::atoi(argv[i])) : otherwise;
  };
  const absl::Status status = mu::Compare(absl::Seconds(argument(1, 10)), argument(2, 7));
  if (!status.ok()) std::fprintf(stderr, "%s\n", std::string(status.message()).c_str());
  return status.ok() ? 0 : 1;
}
