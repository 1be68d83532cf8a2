// The stack of a thread that crashes, for handlers of fatal signals.
#pragma once

namespace mu {

// Loads what WriteStackTrace must not load in a handler. Call it before.
void PrepareStackTraces();

// Writes the calling thread's stack to a file descriptor, a line for each call, the innermost
// first: "  @ program+0x1f2e3d  mu::Runtime::Step()". Calls of libraries have an address instead.
// Without its symbol table (strip) the program has no names: `addr2line -fCe` of the program before
// gives the name for the number. `at`: where the signal came; the handler's own calls are left out.
// In practice async-signal-safe: allocates nothing, and takes no lock that code outside holds.
void WriteStackTrace(int fd, const void* at);

}  // namespace mu
