#include "worker/daemon.h"

int main(int argc, char** argv) { return mu::WorkerMain(argc, argv, mu::NewGrpcTransport); }
