// A suite over every transport: tests are TEST_P(TransportTest, ...), instantiated in
// transport_test.cc.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "common/base/mutex.h"
#include "common/rpc/transport.h"
#include "tests/testing/matchers.h"

namespace mu {

class TransportTest : public ::testing::TestWithParam<std::string> {
 protected:
  TransportTest() : transport_(NewTransport()) {}

  static std::unique_ptr<Transport> NewTransport() {
#if MUSTER_WITH_GRPC
    if (GetParam() == "grpc") return NewGrpcTransport();
#endif
    return NewMemoryTransport();
  }

  std::unique_ptr<RpcServer> Listen(MethodTable methods,
                                    const std::string& address = "127.0.0.1:0") {
    auto server = transport_->Listen(address, std::move(methods));
    EXPECT_THAT(server, testing::IsOk());
    return server.ok() ? *std::move(server) : nullptr;
  }

  const std::unique_ptr<Transport> transport_;
};

// Waits for the end of a unary call.
struct UnaryResult {
  std::function<void(absl::Status, Buffer)> Callback() {
    return [this](absl::Status status, Buffer bytes) {
      ++calls;
      this->status = std::move(status);
      reply = std::move(bytes);
      ended.Notify();
    };
  }
  Notification ended;
  absl::Status status;
  Buffer reply;
  int calls = 0;
};

inline Buffer Text(const std::string& text) { return Buffer(text); }
inline std::string TextOf(const Buffer& buffer) {
  return std::string(buffer.data(), buffer.size());
}

// One call, to its end.
inline absl::StatusOr<std::string> CallText(Channel& channel, const std::string& method,
                                            const std::string& request,
                                            absl::Duration timeout = absl::Seconds(20)) {
  UnaryResult result;
  channel.Unary(method, Text(request), {.timeout = timeout}, result.Callback());
  result.ended.Wait();
  if (!result.status.ok()) return result.status;
  return TextOf(result.reply);
}

// Answers what it is asked.
inline MethodTable EchoMethods(RunOn run_on = RunOn::kTransportThread) {
  MethodTable methods;
  methods.AddUnary("/test/Echo", run_on, [](std::shared_ptr<ServerCall> call, Buffer request) {
    call->Finish(absl::OkStatus(), std::move(request));
  });
  return methods;
}

}  // namespace mu
