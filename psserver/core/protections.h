// Protections of the server's core that the simulation can take away, to see that its checker
// notices. In the product MU_SERVER_BROKEN is `false` and nothing of this is compiled.
#pragma once

#ifdef MUSTER_BREAKABLE
namespace mu::server_core {

struct Broken {
  bool deduplication = false;       // the ledger's answer is ignored: a repeat is applied again
  bool inheritance = false;         // what a restored partition contains is applied to it again
  bool fencing = false;             // older epochs and generations are served
  bool leases = false;              // it serves without a lease
  bool late_fences = false;         // fences of older generations are taken
  bool old_generations = false;     // it serves before it is restored
  bool checksums = false;           // a file's checksum is not looked at
  bool lateness = false;            // gradients that are too late are applied
  bool round_repeats = false;       // a round that was applied is applied again
  bool late_contributions = false;  // what was computed from an earlier round's values is kept
  bool kept_contributions = false;  // what is kept outlives a restore
  bool checked_twice = false;       // a contribution is checked again while it is checked
  bool refusals = false;            // a push that is refused is remembered as one that was applied
};
inline thread_local Broken broken;

}  // namespace mu::server_core
#define MU_SERVER_BROKEN(protection) (::mu::server_core::broken.protection)
#else
#define MU_SERVER_BROKEN(protection) false
#endif
