// A transport whose calls are counted by method: how many, how long, how many bytes, and with which
// code those failed that failed. Bytes are those of messages, without gRPC's headers.
//
// Metrics: rpc.client and rpc.server (timers, of a stream until its end), rpc.client.sent_bytes,
// rpc.client.received_bytes and so for the server, rpc.client.failures and rpc.server.failures.
#pragma once

#include <memory>

#include "common/obs/telemetry.h"
#include "common/rpc/transport.h"

namespace mu {

// `telemetry` outlives it.
std::unique_ptr<Transport> NewMeteredTransport(std::unique_ptr<Transport> inner,
                                               Telemetry* telemetry = &Telemetry::Process());

}  // namespace mu
