// The daemon with the faults of MUSTER_RPC_FAULTS in the calls that it makes.
#include "psserver/daemon.h"
#include "tests/testing/rpc_faults.h"

int main(int argc, char** argv) {
  return mu::PsServerMain(argc, argv, mu::testing::NewFaultyGrpcTransport);
}
