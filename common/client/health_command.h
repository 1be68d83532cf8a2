// `PROGRAM health HOST:PORT`: a probe that works under mutual TLS, for containers without a shell.
#pragma once

#include "common/rpc/transport.h"

namespace mu {

// Whether the line asks for that.
bool IsHealthCommand(int argc, const char* const* argv);

// Asks the process at that address, of the role `callee`, with a certificate of its own role. The
// exit code: 0 healthy, 2 bad flags, 4 not healthy or out of reach (said on standard error).
int HealthMain(int argc, const char* const* argv, pb::Role callee,
               const MakeTransport& make_transport);

}  // namespace mu
