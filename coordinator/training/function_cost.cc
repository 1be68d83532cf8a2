#include "coordinator/training/function_cost.h"

#include <algorithm>
#include <vector>

#include "absl/time/time.h"
#include "common/base/steady_now.h"
#include "common/rpc/typed.h"
#include "proto/telemetry.pb.h"

namespace mu {
namespace {

constexpr double kDefaultCallSeconds = 0.0005;
// What an empty call to a worker takes.
double MeasureCallSeconds(Coordinator& coordinator) {
  const auto workers = coordinator.runtime().Workers();
  if (workers.empty()) return kDefaultCallSeconds;
  std::vector<double> seconds;
  for (int i = 0; i < 5; ++i) {
    const absl::Time begin = SteadyNow();
    const auto reply =
        Call<pb::TelemetryReply>(*workers[0]->channel, "/muster.Worker/GetTelemetry",
                                 pb::TelemetryRequest(), {.timeout = absl::Seconds(1)});
    if (!reply.ok()) return kDefaultCallSeconds;
    seconds.push_back(absl::ToDoubleSeconds(SteadyNow() - begin));
  }
  std::sort(seconds.begin(), seconds.end());
  return seconds[seconds.size() / 2];
}

}  // namespace

double MeasureFunctionSeconds(Coordinator& coordinator) {
  const double call = MeasureCallSeconds(coordinator);
  return coordinator.runtime().options().in_flight > 1 ? call : 2 * call;
}

}  // namespace mu
