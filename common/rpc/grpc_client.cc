#include "common/rpc/grpc_client.h"

#include <grpc/support/time.h>
#include <grpcpp/client_context.h>
#include <grpcpp/create_channel.h>

#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/base/error_kind.h"
#include "common/env/nobody_listens.h"
#include "common/rpc/grpc_bytes.h"
#include "common/rpc/grpc_options.h"
#include "common/rpc/refused.h"
#include "common/rpc/write_pump.h"

namespace mu {
namespace {

// What both kinds of call share: the context, and the place for error messages.
template <typename Base>
struct CallBase : Base {
  CallBase(std::shared_ptr<const GrpcPeer> peer, std::string method, CallOptions options,
           std::shared_ptr<GrpcActiveCalls> active)
      : peer(std::move(peer)),
        method(std::move(method)),
        timeout(options.timeout),
        active(std::move(active)) {
    // By the clock that nobody sets.
    if (timeout != absl::InfiniteDuration()) {
      context.set_deadline(
          gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
                       gpr_time_from_nanos(absl::ToInt64Nanoseconds(timeout), GPR_TIMESPAN)));
    }
  }
  void Cancel() override { context.TryCancel(); }

  absl::Status ToStatus(const grpc::Status& status) const {
    absl::Status result = FromWire(FromGrpcStatus(status));
    if (result.ok() || !status.error_details().empty()) return result;
    switch (result.code()) {
      case absl::StatusCode::kDeadlineExceeded:
        return absl::DeadlineExceededError(absl::StrCat(method, " at ", peer->address,
                                                        " did not answer within ",
                                                        absl::FormatDuration(timeout)));
      case absl::StatusCode::kUnavailable:
        return Annotate(result, peer->tls.any() ? TlsContext() : ClearContext(result));
      default:
        return result;
    }
  }

  // The other end refuses a certificate after our handshake is over, and then says no more than
  // that it closes: what is wrong with ours is seen here.
  std::string TlsContext() const {
    const absl::Status own = CheckTlsFiles(peer->tls, pb::ROLE_UNSPECIFIED);
    return absl::StrCat(peer->address, " (TLS, as ", TlsNameOf(peer->role), ")",
                        own.ok() ? "" : ": ", std::string(own.message()));
  }

  // An end that wants TLS closes a connection in the clear without a word.
  std::string ClearContext(const absl::Status& status) const {
    const bool hung_up = absl::StrContains(status.message(), "failed to connect") &&
                         absl::StrContains(status.message(), "Socket closed");
    return absl::StrCat(peer->address, hung_up ? " (in the clear; does it want --tls_cert?)" : "");
  }

  const std::shared_ptr<const GrpcPeer> peer;
  const std::string method;
  const absl::Duration timeout;
  const std::shared_ptr<GrpcActiveCalls> active;
  grpc::ClientContext context;
  grpc::ByteBuffer request;
  grpc::ByteBuffer response;
};

struct UnaryCall final : CallBase<ClientCall> {
  using CallBase::CallBase;
  void Done(const grpc::Status& status) {
    {
      // Gone, with all that it owns, before the transport hears that the call is over.
      const auto callback = std::move(done);
      done = nullptr;
      callback(ToStatus(status), status.ok() ? FromByteBuffer(response) : Buffer());
    }
    response.Clear();
    active->Remove(this);
  }
  std::function<void(absl::Status, Buffer)> done;
};

// Keeps itself alive until OnDone.
struct StreamCall final : CallBase<ClientCall>,
                          grpc::ClientBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
  using CallBase::CallBase;
  void OnReadDone(bool ok) override {
    if (!ok) return;
    message(FromByteBuffer(response));
    response.Clear();
    StartRead(&response);
  }
  void OnDone(const grpc::Status& status) override {
    {
      const auto callback = std::move(done);
      done = nullptr;
      message = nullptr;
      callback(ToStatus(status));
    }
    const std::shared_ptr<StreamCall> last = std::move(self);
    active->Remove(this);
  }
  std::function<void(Buffer)> message;
  std::function<void(absl::Status)> done;
  std::shared_ptr<StreamCall> self;
};

// The same in both directions. A hold stands for whoever may poke: gRPC ends the call when it is
// let go of, which is when nothing more can be read.
struct ConverseCall final : CallBase<ClientStream>,
                            grpc::ClientBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
  using CallBase::CallBase;
  void Poke() override {
    if (pump.Poke()) WriteNext();
  }
  void WriteNext() {
    Buffer next;
    if (!pump.Next(&next)) return;
    MutexLock lock(&mutex);
    if (ended) return;  // nobody reads it
    outgoing = ToByteBuffer(next);
    StartWrite(&outgoing);
  }
  void OnWriteDone(bool ok) override {
    if (ok) WriteNext();
  }
  void OnReadDone(bool ok) override {
    if (ok) {
      message(FromByteBuffer(response));
      response.Clear();
      return StartRead(&response);
    }
    MutexLock lock(&mutex);
    ended = true;
    RemoveHold();
  }
  void OnDone(const grpc::Status& status) override {
    pump.Stop();
    absl::Status end = ToStatus(status);
    if (!absl::IsUnavailable(end) || !status.error_details().empty()) return End(std::move(end));
    // Whether the callee is gone its machine says at once, or nothing for a while.
    active->threads().Post([this, end = std::move(end)] {
      End(NobodyListens(peer->address, kRefusalTimeout) ? AsRefused(end) : end);
    });
  }
  void End(absl::Status status) {
    {
      const auto callback = std::move(done);
      done = nullptr;
      message = nullptr;
      callback(std::move(status));
    }
    const std::shared_ptr<ConverseCall> last = std::move(self);
    active->Remove(this);
  }

  static constexpr absl::Duration kRefusalTimeout = absl::Milliseconds(500);
  WritePump pump;
  std::function<void(Buffer)> message;
  std::function<void(absl::Status)> done;
  std::shared_ptr<ConverseCall> self;
  grpc::ByteBuffer outgoing;  // what gRPC is writing
  Mutex mutex;
  bool ended ABSL_GUARDED_BY(mutex) = false;  // nothing is written any more
};

}  // namespace

bool GrpcActiveCalls::Add(ClientCall* call, std::weak_ptr<ClientCall> weak,
                          const Channel* channel) {
  MutexLock lock(&mutex_);
  calls_[call] = {std::move(weak), channel};
  return !closed_;
}

void GrpcActiveCalls::Remove(ClientCall* call) {
  MutexLock lock(&mutex_);
  calls_.erase(call);
  if (calls_.empty()) empty_.SignalAll();
}

void GrpcActiveCalls::CancelIf(const Channel* channel) {
  std::vector<std::shared_ptr<ClientCall>> calls;
  {
    MutexLock lock(&mutex_);
    for (const auto& [key, entry] : calls_) {
      if (channel != nullptr && entry.channel != channel) continue;
      if (auto call = entry.call.lock()) calls.push_back(std::move(call));
    }
  }
  for (const auto& call : calls) call->Cancel();
}

void GrpcActiveCalls::CancelCallsOf(const Channel* channel) { CancelIf(channel); }

void GrpcActiveCalls::CloseAndWait() {
  {
    MutexLock lock(&mutex_);
    closed_ = true;
  }
  CancelIf(nullptr);
  MutexLock lock(&mutex_);
  while (!calls_.empty()) empty_.Wait(&mutex_);
}

namespace {

std::shared_ptr<grpc::Channel> NewChannel(const GrpcPeer& peer, const TransportOptions& options,
                                          const GrpcCredentials& credentials) {
  grpc::ChannelArguments arguments = ClientArguments(options);
  const auto proof = credentials.ForChannel(peer.role, &arguments);
  return grpc::CreateCustomChannel(peer.address, proof, arguments);
}

}  // namespace

GrpcChannel::GrpcChannel(GrpcPeer peer, const TransportOptions& options,
                         const GrpcCredentials& credentials,
                         std::shared_ptr<GrpcActiveCalls> active)
    : peer_(std::make_shared<const GrpcPeer>(std::move(peer))),
      active_(std::move(active)),
      stub_(NewChannel(*peer_, options, credentials)) {}

std::shared_ptr<ClientCall> GrpcChannel::Unary(const std::string& method, Buffer request,
                                               CallOptions options,
                                               std::function<void(absl::Status, Buffer)> done) {
  auto call = std::make_shared<UnaryCall>(peer_, method, options, active_);
  call->request = ToByteBuffer(request);
  call->done = std::move(done);
  if (!active_->Add(call.get(), call, this)) call->Cancel();
  stub_.UnaryCall(&call->context, call->method, grpc::StubOptions(), &call->request,
                  &call->response, [call](grpc::Status status) { call->Done(status); });
  return call;
}

std::shared_ptr<ClientCall> GrpcChannel::ServerStream(const std::string& method, Buffer request,
                                                      CallOptions options,
                                                      std::function<void(Buffer)> message,
                                                      std::function<void(absl::Status)> done) {
  auto call = std::make_shared<StreamCall>(peer_, method, options, active_);
  call->request = ToByteBuffer(request);
  call->message = std::move(message);
  call->done = std::move(done);
  call->self = call;
  if (!active_->Add(call.get(), call, this)) call->Cancel();
  stub_.PrepareBidiStreamingCall(&call->context, call->method, grpc::StubOptions(), call.get());
  call->StartWriteLast(&call->request, grpc::WriteOptions());
  call->StartRead(&call->response);
  call->StartCall();
  return call;
}

std::shared_ptr<ClientStream> GrpcChannel::Converse(const std::string& method,
                                                    Conversation conversation,
                                                    std::function<void(absl::Status)> done) {
  auto call = std::make_shared<ConverseCall>(
      peer_, method, CallOptions{.timeout = absl::InfiniteDuration()}, active_);
  call->pump.Start(std::move(conversation.next));
  call->message = std::move(conversation.message);
  call->done = std::move(done);
  call->self = call;
  if (!active_->Add(call.get(), call, this)) call->Cancel();
  stub_.PrepareBidiStreamingCall(&call->context, call->method, grpc::StubOptions(), call.get());
  call->AddHold();
  call->StartRead(&call->response);
  call->Poke();
  call->StartCall();
  return call;
}

}  // namespace mu
