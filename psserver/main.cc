#include "psserver/daemon.h"

int main(int argc, char** argv) { return mu::PsServerMain(argc, argv, mu::NewGrpcTransport); }
