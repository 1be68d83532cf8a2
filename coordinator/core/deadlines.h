// How long the coordinator waits for the answers to its calls, and how often it makes them again.
// The timeout of a silent daemon is another thing: it is the job's.
#pragma once

#include "absl/time/time.h"
#include "coordinator/core/call_error.h"

namespace mu::deadlines {

// Of a worker that looks through a file: reading a large compressed one for the first time takes
// minutes. Others help much earlier, see FileScan.
inline constexpr absl::Duration kScan = absl::Hours(1);

// Of each part of an installation, which may wait for a large graph to compile or a file to be
// listed, not for data.
inline constexpr absl::Duration kInstall = absl::Seconds(60);

// Of short calls to servers, with all their tries. A server that does not answer for this long is
// lost or about to be found so: its replacement has another address.
inline constexpr absl::Duration kShortCalls = absl::Seconds(3);

// For so long calls to servers that may take long are tried again. A try has no end of its own,
// since nobody knows how long a server's disk takes: heartbeats say whether it moves, and
// InterruptServers ends the call of a server that is lost.
inline constexpr absl::Duration kLongCalls = absl::Minutes(30);

// How often a call is tried with errors of machines, before they are told: for 8 to 17 s
// (RetryDelays) if servers answer at once. A server that is lost meanwhile does not count.
inline constexpr int kTries = 20;

// Whether what failed with this error is asked for again. Counts the failure in `tries`.
inline bool MayTryAgain(const CallError& error, int* tries) {
  return error.passing() && ++*tries < kTries;
}

}  // namespace mu::deadlines
