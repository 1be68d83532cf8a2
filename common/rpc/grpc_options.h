// The settings of gRPC that both ends use.
#pragma once

#include <grpcpp/server_builder.h>
#include <grpcpp/support/channel_arguments.h>

#include "common/rpc/transport.h"

namespace mu {

void SetServerOptions(grpc::ServerBuilder* builder, const TransportOptions& options);
grpc::ChannelArguments ClientArguments(const TransportOptions& options);

}  // namespace mu
