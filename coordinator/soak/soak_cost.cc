#include "coordinator/soak/soak_cost.h"

namespace mu {

std::vector<RoleCost> CostOf(const SoakVerdict& run, const SoakPrices& prices) {
  const double calm_hours = run.calm->seconds / 3600, hours = run.run->seconds / 3600;
  const auto cost = [&](const char* role, int machines, const MachinePrice& price) {
    return RoleCost{role, machines, machines * calm_hours * price.on_demand,
                    machines * hours * price.preemptible.value_or(price.on_demand)};
  };
  return {cost("coordinator", 1, prices.coordinator),
          cost("worker", run.run->workers, prices.worker), cost("ps", run.run->ps, prices.ps)};
}

RoleCost TotalOf(const std::vector<RoleCost>& costs) {
  RoleCost total{"all"};
  for (const RoleCost& cost : costs) {
    total.machines += cost.machines;
    total.on_demand += cost.on_demand;
    total.preemptible += cost.preemptible;
  }
  return total;
}

}  // namespace mu
