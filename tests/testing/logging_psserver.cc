// The daemon, with a line in the file MUSTER_PUSH_LOG for each push that it has answered, see
// push_log.h.
#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/client/too_late.h"
#include "common/process/end_process.h"
#include "common/rpc/frame.h"
#include "proto/psserver.pb.h"
#include "psserver/daemon.h"
#include "tests/testing/push_log.h"

namespace mu::testing {
namespace {

// What a line says after its outcome.
std::string Describe(const Buffer& frame) {
  pb::PushRequest push;
  const auto payload = ParseFrame(frame, &push);
  if (!payload.ok()) return "";
  uint64_t rows = 0;
  for (const pb::TableKeys& table : push.tables()) {
    for (const uint32_t count : table.counts()) rows += count;
  }
  std::string line = absl::StrCat(push.context().generation(), " ", push.round(), " ",
                                  push.function(), " ", push.step(), " ");
  for (uint64_t i = 0; i < rows && (i + 1) * sizeof(int64_t) <= payload->size(); ++i) {
    int64_t row = 0;
    std::memcpy(&row, payload->data() + i * sizeof(row), sizeof(row));
    absl::StrAppend(&line, row, ",");
  }
  return line;
}

class LoggedCall final : public ServerCall {
 public:
  LoggedCall(std::shared_ptr<ServerCall> call, int log, std::string push)
      : call_(std::move(call)), log_(log), push_(std::move(push)) {}

  bool IsCancelled() const override { return call_->IsCancelled(); }
  bool CallerMayBe(pb::Role role) const override { return call_->CallerMayBe(role); }
  void OnCancel(std::function<void()> callback) override { call_->OnCancel(std::move(callback)); }
  void Send(Buffer message) override { call_->Send(std::move(message)); }
  void Finish(absl::Status status, Buffer reply = {}) override {
    const char* const outcome = status.ok()         ? kPushTaken
                                : IsTooLate(status) ? kPushTooLate
                                                    : kPushRefused;
    const std::string line = absl::StrCat(outcome, " ", push_, "\n");
    MU_CHECK(::write(log_, line.data(), line.size()) == static_cast<ssize_t>(line.size()));
    call_->Finish(std::move(status), std::move(reply));
  }

 private:
  const std::shared_ptr<ServerCall> call_;
  const int log_;
  const std::string push_;
};

class LoggingTransport final : public Transport {
 public:
  LoggingTransport(std::unique_ptr<Transport> inner, int log)
      : inner_(std::move(inner)), log_(log) {}

  absl::StatusOr<std::unique_ptr<RpcServer>> Listen(const std::string& address,
                                                    MethodTable methods) override {
    MethodTable logged;
    for (const auto& [name, method] : methods.all()) {
      MethodTable::Method with_log = method;
      if (name == "/muster.PsServer/Push") {
        with_log.handler = [push = method.handler, log = log_](std::shared_ptr<ServerCall> call,
                                                               Buffer request) {
          push(std::make_shared<LoggedCall>(std::move(call), log, Describe(request)), request);
        };
      }
      logged.Add(name, std::move(with_log));
    }
    return inner_->Listen(address, std::move(logged));
  }
  std::shared_ptr<Channel> Connect(const std::string& address, pb::Role callee) override {
    return inner_->Connect(address, callee);
  }

 private:
  const std::unique_ptr<Transport> inner_;
  const int log_;
};

std::unique_ptr<Transport> NewLoggingTransport(const TransportOptions& options) {
  const char* const path = std::getenv(kPushLogVariable);
  MU_CHECK(path != nullptr);
  // A process that takes the place of a killed one goes on in its file.
  const int log = ::open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  MU_CHECK(log >= 0);
  return std::make_unique<LoggingTransport>(NewGrpcTransport(options), log);
}

}  // namespace
}  // namespace mu::testing

int main(int argc, char** argv) {
  mu::EndProcess(mu::PsServerMain(argc, argv, mu::testing::NewLoggingTransport));
}
