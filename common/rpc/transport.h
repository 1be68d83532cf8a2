// The transport: calls by name, bytes in and bytes out. Every service of Muster goes through it, so
// that gRPC stays in one place, tests can run a cluster in memory (and under TSan), and faults can
// be injected by method name.
//
// Methods are full gRPC paths ("/muster.Worker/Run"); a Buffer that arrives begins at a multiple
// of 16. Messages are protobuf or frames (common/rpc/frame.h), so the wire is plain gRPC. Typed
// wrappers: common/rpc/typed.h.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/status.h"
#include "common/env/tls_files.h"
#include "common/rpc/buffer.h"
#include "common/rpc/conversation.h"

namespace mu {

// A call under way, as its caller holds it. Thread safe.
class ClientCall {
 public:
  virtual ~ClientCall() = default;
  // The call ends soon, with CANCELLED unless it had ended already. Never calls back from within.
  virtual void Cancel() = 0;
};

// A stream in both directions, as its caller holds it. Thread safe.
class ClientStream : public ClientCall {
 public:
  // There may be something to write: Conversation::next is asked, here or on another thread.
  virtual void Poke() = 0;
};

struct CallOptions {
  absl::Duration timeout = absl::Seconds(30);  // InfiniteDuration: none
};

// A connection to one address; connects lazily and again after it was lost. While there is no
// connection calls fail at once with UNAVAILABLE (whoever may repeat the call does). Thread safe.
class Channel {
 public:
  // Cancels the calls under way; their callbacks come soon, maybe after the destructor has
  // returned.
  virtual ~Channel() = default;
  // `done` is called exactly once, from another thread or, never, from within. It must not block.
  virtual std::shared_ptr<ClientCall> Unary(const std::string& method, Buffer request,
                                            CallOptions options,
                                            std::function<void(absl::Status, Buffer)> done) = 0;
  // `message` is called for each message in order, then `done` once; one at a time. They must not
  // block.
  virtual std::shared_ptr<ClientCall> ServerStream(const std::string& method, Buffer request,
                                                   CallOptions options,
                                                   std::function<void(Buffer)> message,
                                                   std::function<void(absl::Status)> done) = 0;
  // A stream in both directions, without a deadline. `next` has the first message at once. `done`
  // is called once, after the last `message`. An end without an answer, because the callee's
  // machine says that nobody listens at the address, is marked (common/rpc/refused.h).
  virtual std::shared_ptr<ClientStream> Converse(const std::string& method,
                                                 Conversation conversation,
                                                 std::function<void(absl::Status)> done) = 0;
};

// A call under way, as its handler holds it. Thread safe; Finish exactly once (a later one is
// ignored).
class ServerCall {
 public:
  virtual ~ServerCall() = default;
  virtual bool IsCancelled() const = 0;
  // False: the caller's certificate is of another role, or there is no such role. Without TLS
  // anybody may be anything.
  virtual bool CallerMayBe(pb::Role) const { return true; }
  // Called when the caller gave up or vanished, at once if it has already; at most one may be set.
  virtual void OnCancel(std::function<void()> callback) = 0;
  virtual void Send(Buffer message) = 0;  // streams only; queued, never blocks
  virtual void Finish(absl::Status status,
                      Buffer reply = {}) = 0;  // the reply of a unary call; empty for streams
  // Of streams in both directions, once, before the handler returns: what the caller says from then
  // on, and what it is told instead of by Send. Both are let go of soon after Finish.
  virtual void Converse(Conversation) {}
  // There may be something to write, as ClientStream::Poke.
  virtual void Poke() {}
};

using Handler = std::function<void(std::shared_ptr<ServerCall>, Buffer request)>;

enum class RunOn {
  kTransportThread,  // the handler never blocks for more than a short lock
  kOwnThread,        // the handler may block: it runs on a pool that grows
};

// What a server answers to. Filled before Listen.
class MethodTable {
 public:
  struct Method {
    Handler handler;
    RunOn run_on;
    bool streams = false;    // replies
    bool converses = false;  // in both directions
  };
  void AddUnary(std::string method, RunOn run_on, Handler handler) {
    methods_[std::move(method)] = {std::move(handler), run_on};
  }
  void AddServerStream(std::string method, RunOn run_on, Handler handler) {
    methods_[std::move(method)] = {std::move(handler), run_on, true};
  }
  // The handler gets the first message.
  void AddConversation(std::string method, RunOn run_on, Handler handler) {
    methods_[std::move(method)] = {std::move(handler), run_on, true, true};
  }
  void Add(std::string method, Method like) { methods_[std::move(method)] = std::move(like); }
  const absl::flat_hash_map<std::string, Method>& all() const { return methods_; }
  const Method* Find(const std::string& method) const {
    const auto it = methods_.find(method);
    return it == methods_.end() ? nullptr : &it->second;
  }

 private:
  absl::flat_hash_map<std::string, Method> methods_;
};

class RpcServer {
 public:
  virtual ~RpcServer() = default;           // Shutdown()
  virtual std::string address() const = 0;  // "host:port" with the port that was bound
  // Refuses new calls, ends those under way (UNAVAILABLE for their callers, OnCancel for their
  // handlers), returns when no handler and no OnCancel callback runs; none comes later. Not from a
  // handler.
  virtual void Shutdown() = 0;
};

class Transport {
 public:
  // Cancels the calls of its channels and waits for their callbacks (so: not from one of them); a
  // channel that lives longer answers CANCELLED from then on. Servers should be gone before.
  virtual ~Transport() = default;
  // `address` is "host:port", port 0 for any. UNAVAILABLE if it is in use (the message says what to
  // do).
  virtual absl::StatusOr<std::unique_ptr<RpcServer>> Listen(const std::string& address,
                                                            MethodTable methods) = 0;
  // `callee`: whose certificate the other end must have, if certificates are used.
  virtual std::shared_ptr<Channel> Connect(const std::string& address, pb::Role callee) = 0;
};

struct TransportOptions {
  TlsFiles tls = {};
  int64_t max_message_bytes = int64_t{1}
                              << 30;  // larger ones are refused, RESOURCE_EXHAUSTED; below 2 GiB
};

using MakeTransport = std::function<std::unique_ptr<Transport>(const TransportOptions&)>;

// gRPC on TCP; declared here, defined in grpc_transport.cc (absent when MUSTER_WITH_GRPC is off).
std::unique_ptr<Transport> NewGrpcTransport(const TransportOptions& options = {});

// Everything in this process, on threads of its own; addresses are "memory:N". For tests.
std::unique_ptr<Transport> NewMemoryTransport();

}  // namespace mu
