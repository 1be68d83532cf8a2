// Faults in the calls of real processes: the test writes rules into a daemon's environment, and the
// daemons of test builds (faulty_worker, faulty_psserver) obey them.
//
//   options.path = FaultyDaemon("worker");
//   options.environment.push_back(RpcFaultsFor(seed, {{.method = "Push", .probability = 0.1}}));
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/rpc/faults.h"
#include "common/rpc/transport.h"

namespace mu::testing {

// The program of a test build for "worker" or "psserver".
std::string FaultyDaemon(const std::string& role);

// "MUSTER_RPC_FAULTS=..." for these rules; of a rule method, fault and probability count.
std::string RpcFaultsFor(uint64_t seed, const std::vector<FaultRule>& rules);

// gRPC with the faults of MUSTER_RPC_FAULTS; ends the process if that makes no sense. Says on
// standard error how many calls were hit, when the process ends as it should.
std::unique_ptr<Transport> NewFaultyGrpcTransport(const TransportOptions& options = {});

}  // namespace mu::testing
