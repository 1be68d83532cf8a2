// The parameter server's program but for what carries its calls.
#pragma once

#include "common/rpc/transport.h"

namespace mu {

// Runs until it is asked to stop; the exit code. The transport is made when the process listens for
// signals, which comes before any other thread.
int PsServerMain(int argc, char** argv, const MakeTransport& make_transport);

}  // namespace mu
