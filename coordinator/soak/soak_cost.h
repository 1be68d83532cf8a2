// What a run on preemptible machines cost, and what the same run would have cost undisturbed on
// machines that stay. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "coordinator/soak/soak_judge.h"

namespace mu {

// Of one machine for an hour.
struct MachinePrice {
  double on_demand = 0;
  std::optional<double> preemptible;  // nothing: machines of this role are never preemptible
};

struct SoakPrices {
  std::string currency = "USD";
  MachinePrice coordinator, worker, ps;
};

struct RoleCost {
  std::string role;  // coordinator, worker, ps
  int machines = 0;
  double on_demand = 0;    // undisturbed, all machines on demand
  double preemptible = 0;  // as long as the disturbed run took
};

// By role: coordinator, worker, ps. `run` must have a baseline. Each machine is paid from the
// run's start to its end: a machine that replaces a lost one is paid instead of it.
std::vector<RoleCost> CostOf(const SoakVerdict& run, const SoakPrices& prices);
// Sums, with the role "all".
RoleCost TotalOf(const std::vector<RoleCost>& costs);

}  // namespace mu
