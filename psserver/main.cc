#include "common/process/end_process.h"
#include "psserver/daemon.h"

int main(int argc, char** argv) {
  mu::EndProcess(mu::PsServerMain(argc, argv, mu::NewGrpcTransport));
}
