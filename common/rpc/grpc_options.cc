#include "common/rpc/grpc_options.h"

#include <grpc/grpc.h>

#include <algorithm>
#include <limits>

namespace mu {
namespace {

int MessageLimit(const TransportOptions& options) {
  return static_cast<int>(
      std::min<int64_t>(options.max_message_bytes, std::numeric_limits<int>::max()));
}

constexpr int kMaxFrameBytes = (16 << 20) - 1;  // the most that HTTP/2 has
constexpr int kMaxMetadataBytes = 1 << 20;      // long error messages travel as metadata
// How soon a peer that is cut off (no FIN, no RST) is noticed, and its name looked up again: a
// pod's address vanishes with it. The second is also how long sent bytes may stay unacknowledged
// (TCP_USER_TIMEOUT). A stopped process answers no pings either.
constexpr int kKeepaliveTimeMs = 5'000;
constexpr int kKeepaliveTimeoutMs = 10'000;
// What may be under way in one direction of a call. gRPC else finds it out by a ping with nearly
// every message that arrives, which is answered: with a thousand connections, half of all that is
// sent.
constexpr int kWindowBytes = 4 << 20;

}  // namespace

void SetServerOptions(grpc::ServerBuilder* builder, const TransportOptions& options) {
  builder->SetMaxReceiveMessageSize(MessageLimit(options));
  builder->SetMaxSendMessageSize(MessageLimit(options));
  builder->AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);  // a port in use is an error
  builder->AddChannelArgument(GRPC_ARG_HTTP2_MAX_FRAME_SIZE, kMaxFrameBytes);
  builder->AddChannelArgument(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  builder->AddChannelArgument(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, kWindowBytes);
  builder->AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE, kMaxMetadataBytes);
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveTimeMs);
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepaliveTimeoutMs);
  builder->AddChannelArgument(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  builder->AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 1000);
}

grpc::ChannelArguments ClientArguments(const TransportOptions& options) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(MessageLimit(options));
  arguments.SetMaxSendMessageSize(MessageLimit(options));
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_FRAME_SIZE, kMaxFrameBytes);
  arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  arguments.SetInt(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, kWindowBytes);
  arguments.SetInt(GRPC_ARG_MAX_METADATA_SIZE, kMaxMetadataBytes);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveTimeMs);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepaliveTimeoutMs);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  // Daemons come and go: try again soon. (gRPC takes nothing below 100 ms.)
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1000);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS,
                   5000);  // in truth: how long one attempt may take
  arguments.SetInt(GRPC_ARG_DNS_MIN_TIME_BETWEEN_RESOLUTIONS_MS, 1000);
  // A query of which nothing is heard (DNS is UDP, and its servers restart as well) is asked again
  // by c-ares after 5, 15, 35 and 75 seconds. A new one is sooner.
  arguments.SetInt(GRPC_ARG_DNS_ARES_QUERY_TIMEOUT_MS, 3000);
  // A connection per Channel, so that several channels to one address do not wait for each other.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  // We retry where that is safe.
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetInt(GRPC_ARG_SERVICE_CONFIG_DISABLE_RESOLUTION, 1);
  return arguments;
}

}  // namespace mu
