// Typed calls over the transport: protobuf in, protobuf out.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "common/base/mutex.h"
#include "common/rpc/transport.h"

namespace mu {

template <typename Reply, typename Request>
std::shared_ptr<ClientCall> CallAsync(Channel& channel, const std::string& method,
                                      const Request& request, CallOptions options,
                                      std::function<void(absl::StatusOr<Reply>)> done) {
  return channel.Unary(
      method, Buffer(request.SerializeAsString()), options,
      [done = std::move(done), method](absl::Status status, Buffer bytes) {
        if (!status.ok()) return done(std::move(status));
        Reply reply;
        if (!reply.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
          return done(absl::InternalError("the reply of " + method + " does not parse"));
        }
        done(std::move(reply));
      });
}

// Waits for the reply. Not from a transport thread.
template <typename Reply, typename Request>
absl::StatusOr<Reply> Call(Channel& channel, const std::string& method, const Request& request,
                           CallOptions options = {}) {
  auto state = std::make_shared<std::pair<Notification, absl::StatusOr<Reply>>>();
  CallAsync<Reply>(channel, method, request, options, [state](absl::StatusOr<Reply> reply) {
    state->second = std::move(reply);
    state->first.Notify();
  });
  state->first.Wait();
  return std::move(state->second);
}

// A handler that parses the request, calls `f` (StatusOr<Reply>(const Request&)) and sends what it
// returns.
template <typename Request, typename Function>
Handler TypedHandler(Function f) {
  return [f = std::move(f)](std::shared_ptr<ServerCall> call, Buffer bytes) {
    Request request;
    if (!request.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
      return call->Finish(
          absl::InvalidArgumentError("the request does not parse as " + request.GetTypeName()));
    }
    auto reply = f(request);
    if (!reply.ok()) return call->Finish(reply.status());
    call->Finish(absl::OkStatus(), Buffer(reply->SerializeAsString()));
  };
}

}  // namespace mu
