// Protections of the worker's core that the simulation can take away, to see that its checker
// notices. In the product MU_WORKER_BROKEN is `false` and nothing of this is compiled.
#pragma once

#ifdef MUSTER_BREAKABLE
namespace mu::worker_core {

struct Broken {
  bool fencing = false;            // older epochs and generations are taken
  bool resumed_early = false;      // a run begins one step before the one it was asked for
  bool resumed_late = false;       // one step after it
  bool old_routing = false;        // a routing is kept although a newer one came
  bool results_kept = false;       // results that are held when a run is handed back are not sent
  bool generation_of_now = false;  // a run pushes in the newest generation, not in its own
  bool early_cancel = false;       // a cancellation is answered while its run may still push
  bool old_connection = false;     // a connection that comes late takes the place of a newer one
  bool late_install = false;       // a function of a former epoch is installed in this one
};
inline thread_local Broken broken;

}  // namespace mu::worker_core
#define MU_WORKER_BROKEN(protection) (::mu::worker_core::broken.protection)
#else
#define MU_WORKER_BROKEN(protection) false
#endif
