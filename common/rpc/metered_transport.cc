#include "common/rpc/metered_transport.h"

#include <atomic>
#include <utility>

#include "absl/strings/strip.h"
#include "common/base/mutex.h"

namespace mu {
namespace {

// What is counted of one method on one side. The telemetry owns what it points to.
class MethodMeter {
 public:
  MethodMeter(Telemetry* telemetry, bool client, absl::string_view method)
      : telemetry_(telemetry), client_(client) {
    absl::ConsumePrefix(&method, "/muster.");
    absl::ConsumePrefix(&method, "/");
    labels_ = {{"method", std::string(method)}};
    if (client) {
      time_ = telemetry->timer("rpc.client", "Calls to other processes, until their end", labels_);
      sent_ = telemetry->counter("rpc.client.sent_bytes", "Bytes of requests sent", labels_);
      received_ =
          telemetry->counter("rpc.client.received_bytes", "Bytes of replies received", labels_);
    } else {
      time_ = telemetry->timer("rpc.server", "Calls of other processes, until their end", labels_);
      sent_ = telemetry->counter("rpc.server.sent_bytes", "Bytes of replies sent", labels_);
      received_ =
          telemetry->counter("rpc.server.received_bytes", "Bytes of requests received", labels_);
    }
  }

  void Sent(size_t bytes) { sent_->Add(static_cast<int64_t>(bytes)); }
  void Received(size_t bytes) { received_->Add(static_cast<int64_t>(bytes)); }
  void Ended(uint64_t began_ns, const absl::Status& status) {
    time_->Count(began_ns, NowNs());
    if (status.ok()) return;
    MetricLabels labels = labels_;
    labels.emplace_back("code", absl::StatusCodeToString(status.code()));
    telemetry_
        ->counter(client_ ? "rpc.client.failures" : "rpc.server.failures",
                  client_ ? "Calls to other processes that failed"
                          : "Calls of other processes that failed",
                  std::move(labels))
        ->Add();
  }

 private:
  Telemetry* const telemetry_;
  const bool client_;
  MetricLabels labels_;
  Timer* time_;
  Counter* sent_;
  Counter* received_;
};

Conversation Metered(Conversation inner, const std::shared_ptr<MethodMeter>& meter) {
  return {[meter, next = std::move(inner.next)](Buffer* message) {
            if (!next(message)) return false;
            meter->Sent(message->size());
            return true;
          },
          [meter, take = std::move(inner.message)](Buffer message) {
            meter->Received(message.size());
            take(std::move(message));
          }};
}

// The meters of the methods that were called, each made at the first call.
class Meters {
 public:
  Meters(Telemetry* telemetry, bool client) : telemetry_(telemetry), client_(client) {}

  std::shared_ptr<MethodMeter> Of(const std::string& method) {
    MutexLock lock(&mutex_);
    auto& meter = meters_[method];
    if (meter == nullptr) meter = std::make_shared<MethodMeter>(telemetry_, client_, method);
    return meter;
  }

 private:
  Telemetry* const telemetry_;
  const bool client_;
  Mutex mutex_;
  absl::flat_hash_map<std::string, std::shared_ptr<MethodMeter>> meters_ ABSL_GUARDED_BY(mutex_);
};

class MeteredChannel final : public Channel {
 public:
  MeteredChannel(std::shared_ptr<Channel> inner, std::shared_ptr<Meters> meters)
      : inner_(std::move(inner)), meters_(std::move(meters)) {}

  std::shared_ptr<ClientCall> Unary(const std::string& method, Buffer request, CallOptions options,
                                    std::function<void(absl::Status, Buffer)> done) override {
    std::shared_ptr<MethodMeter> meter = meters_->Of(method);
    meter->Sent(request.size());
    return inner_->Unary(method, std::move(request), options,
                         [meter = std::move(meter), began = NowNs(), done = std::move(done)](
                             absl::Status status, Buffer reply) {
                           meter->Received(reply.size());
                           meter->Ended(began, status);
                           done(std::move(status), std::move(reply));
                         });
  }

  std::shared_ptr<ClientCall> ServerStream(const std::string& method, Buffer request,
                                           CallOptions options, std::function<void(Buffer)> message,
                                           std::function<void(absl::Status)> done) override {
    std::shared_ptr<MethodMeter> meter = meters_->Of(method);
    meter->Sent(request.size());
    return inner_->ServerStream(
        method, std::move(request), options,
        [meter, message = std::move(message)](Buffer one) {
          meter->Received(one.size());
          message(std::move(one));
        },
        [meter, began = NowNs(), done = std::move(done)](absl::Status status) {
          meter->Ended(began, status);
          done(std::move(status));
        });
  }

  std::shared_ptr<ClientStream> Converse(const std::string& method, Conversation conversation,
                                         std::function<void(absl::Status)> done) override {
    const std::shared_ptr<MethodMeter> meter = meters_->Of(method);
    return inner_->Converse(method, Metered(std::move(conversation), meter),
                            [meter, began = NowNs(), done = std::move(done)](absl::Status status) {
                              meter->Ended(began, status);
                              done(std::move(status));
                            });
  }

 private:
  const std::shared_ptr<Channel> inner_;
  const std::shared_ptr<Meters> meters_;
};

class MeteredServerCall final : public ServerCall {
 public:
  MeteredServerCall(std::shared_ptr<ServerCall> inner, std::shared_ptr<MethodMeter> meter)
      : inner_(std::move(inner)), meter_(std::move(meter)), began_ns_(NowNs()) {}

  ~MeteredServerCall() override {
    if (!finished_) meter_->Ended(began_ns_, absl::InternalError("no answer"));
  }

  bool IsCancelled() const override { return inner_->IsCancelled(); }
  bool CallerMayBe(pb::Role role) const override { return inner_->CallerMayBe(role); }
  void OnCancel(std::function<void()> callback) override { inner_->OnCancel(std::move(callback)); }
  void Send(Buffer message) override {
    meter_->Sent(message.size());
    inner_->Send(std::move(message));
  }
  void Finish(absl::Status status, Buffer reply) override {
    if (!finished_.exchange(true)) {
      meter_->Sent(reply.size());
      meter_->Ended(began_ns_, status);
    }
    inner_->Finish(std::move(status), std::move(reply));
  }
  void Converse(Conversation conversation) override {
    inner_->Converse(Metered(std::move(conversation), meter_));
  }
  void Poke() override { inner_->Poke(); }

 private:
  const std::shared_ptr<ServerCall> inner_;
  const std::shared_ptr<MethodMeter> meter_;
  const uint64_t began_ns_;
  std::atomic<bool> finished_ = false;
};

class MeteredTransport final : public Transport {
 public:
  MeteredTransport(std::unique_ptr<Transport> inner, Telemetry* telemetry)
      : telemetry_(telemetry),
        calls_(std::make_shared<Meters>(telemetry, /*client=*/true)),
        inner_(std::move(inner)) {}

  absl::StatusOr<std::unique_ptr<RpcServer>> Listen(const std::string& address,
                                                    MethodTable methods) override {
    MethodTable metered;
    for (const auto& [name, method] : methods.all()) {
      auto meter = std::make_shared<MethodMeter>(telemetry_, /*client=*/false, name);
      Handler handler = [meter, inner = method.handler](std::shared_ptr<ServerCall> call,
                                                        Buffer request) {
        meter->Received(request.size());
        inner(std::make_shared<MeteredServerCall>(std::move(call), meter), std::move(request));
      };
      MethodTable::Method counted = method;
      counted.handler = std::move(handler);
      metered.Add(name, std::move(counted));
    }
    return inner_->Listen(address, std::move(metered));
  }

  std::shared_ptr<Channel> Connect(const std::string& address, pb::Role callee) override {
    return std::make_shared<MeteredChannel>(inner_->Connect(address, callee), calls_);
  }

 private:
  Telemetry* const telemetry_;
  const std::shared_ptr<Meters> calls_;
  const std::unique_ptr<Transport> inner_;
};

}  // namespace

std::unique_ptr<Transport> NewMeteredTransport(std::unique_ptr<Transport> inner,
                                               Telemetry* telemetry) {
  return std::make_unique<MeteredTransport>(std::move(inner), telemetry);
}

}  // namespace mu
