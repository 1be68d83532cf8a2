// The daemon with the faults of MUSTER_RPC_FAULTS in the calls that it makes.
#include "tests/testing/rpc_faults.h"
#include "worker/daemon.h"

int main(int argc, char** argv) {
  return mu::WorkerMain(argc, argv, mu::testing::NewFaultyGrpcTransport);
}
