// Protections of streams that the simulation can take away, to see that its checker notices. In the
// product MU_STREAM_BROKEN is `false` and nothing of this is compiled.
#pragma once

#ifdef MUSTER_BREAKABLE
namespace mu::resumable_stream {

struct Broken {
  bool repeats_taken = false;    // the number of a message that arrives is not looked at
  bool not_sent_again = false;   // what was not confirmed is not sent on the next connection
  bool confirmed_early = false;  // a message counts as received before it is
};
inline thread_local Broken broken;

}  // namespace mu::resumable_stream
#define MU_STREAM_BROKEN(protection) (::mu::resumable_stream::broken.protection)
#else
#define MU_STREAM_BROKEN(protection) false
#endif
