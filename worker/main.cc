#include "common/process/end_process.h"
#include "worker/daemon.h"

int main(int argc, char** argv) {
  mu::EndProcess(mu::WorkerMain(argc, argv, mu::NewGrpcTransport));
}
