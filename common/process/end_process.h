// How daemons and the `coordinator` program end.
#pragma once

namespace mu {

// Ends the process at once, with all that was written to streams (the log is one) on its way.
// Returning from main() would destroy static objects, OpenSSL's among them, while gRPC's threads
// may be in a handshake, and a process that had done its work would end with SIGSEGV.
[[noreturn]] void EndProcess(int exit_code);

}  // namespace mu
