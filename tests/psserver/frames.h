// Requests of the data plane made by hand, for tests that go around the client.
#pragma once

#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "common/base/mutex.h"
#include "common/rpc/frame.h"
#include "proto/psserver.pb.h"
#include "psserver/server.h"

namespace mu::testing {

template <typename T>
std::string Bytes(const std::vector<T>& values) {
  return std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
}

inline Buffer Frame(const google::protobuf::MessageLite& header, const std::string& payload) {
  FrameWriter writer(header, payload.size());
  std::memcpy(writer.payload, payload.data(), payload.size());
  return std::move(writer.buffer).Finish();
}

inline absl::StatusOr<pb::PushReply> PushAndWait(PsServer* server, const Buffer& frame) {
  absl::StatusOr<pb::PushReply> result = absl::InternalError("no answer");
  Notification done;
  server->Push(frame, [&](absl::StatusOr<pb::PushReply> reply) {
    result = std::move(reply);
    done.Notify();
  });
  done.Wait();
  return result;
}

inline absl::StatusOr<pb::AssignReply> AssignAndWait(PsServer* server,
                                                     const pb::AssignRequest& request) {
  absl::StatusOr<pb::AssignReply> result = absl::InternalError("no answer");
  Notification done;
  server->Assign(request, [&](absl::StatusOr<pb::AssignReply> reply) {
    result = std::move(reply);
    done.Notify();
  });
  done.Wait();
  return result;
}

// assign_add of `delta` to variable 2 ("steps" of SmallModel).
inline Buffer CountingPush(const pb::RequestContext& context, uint64_t function, uint32_t step,
                           int64_t delta = 1) {
  pb::PushRequest request;
  *request.mutable_context() = context;
  request.set_function(function);
  request.set_step(step);
  auto* update = request.add_variables();
  update->set_variable(2);
  update->set_kind(pb::VariableUpdate::ASSIGN_ADD);
  return Frame(request, Bytes<int64_t>({delta}));
}

}  // namespace mu::testing
