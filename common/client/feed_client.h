// The coordinator's end of the stream to a worker (FeedRequest in proto/worker.proto): it opens the
// stream, opens it again when its connection has broken, and goes on where it was. Thread safe.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/base/mutex.h"
#include "common/client/feed_retries.h"
#include "common/rpc/resumable_end.h"
#include "common/rpc/transport.h"
#include "proto/worker.pb.h"

namespace mu {

class FeedClient : public std::enable_shared_from_this<FeedClient> {
 public:
  struct Options {
    std::shared_ptr<Channel> channel;
    muster::FeedHello hello;  // without the connection
    // For so long the stream may be without a connection on which the worker answers, as far as
    // this process ran (FeedRetries decides).
    absl::Duration give_up = absl::Seconds(10);
    // Runs its argument soon, on the thread on which messages are made. Null: messages are made on
    // the thread that calls Send.
    std::function<void(std::function<void()>)> writer;
    // Must not block; one at a time, in order.
    std::function<void(const muster::FeedReply& reply)> on_reply;
    // The connection has broken and is opened again. May be null.
    std::function<void(const absl::Status& why)> on_broken;
    // Called once, last, never from within. OK: after Close. DATA_LOSS: the worker says what makes
    // no sense. Else the stream cannot go on: the process is gone (IsRefused), it is another one or
    // serves another coordinator (FAILED_PRECONDITION), it does not know streams (UNIMPLEMENTED),
    // or it could not be reached for `give_up`.
    std::function<void(const absl::Status& status)> on_ended;
    ResumableEnd::Stream::Options stream;
  };
  static std::shared_ptr<FeedClient> Open(Options options);

  // See ResumableEnd::Add; the parts are those of a FeedRequest. Nothing happens after the end.
  void Send(size_t bytes, ResumableEnd::Part append);
  // Tells the worker that nobody waits any more, and ends, soon.
  void Close();

 private:
  explicit FeedClient(Options options);
  // A connection, by its number. It is open until its OnDone is over, and only who finds none open
  // may end the stream itself. `stream` is null until it is known and when it is over.
  struct Connection {
    uint64_t number = 0;
    bool open = false;
    bool broken = false;  // it is to be cancelled
    std::shared_ptr<ClientStream> stream;
  };

  void Connect();
  void OnMessage(uint64_t connection, const Buffer& bytes);
  void OnDone(absl::Status status);
  // Until the worker answers: for how long it has not. Ends the stream after give_up.
  void CountSoon() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void CountSilence();
  void PokeSoon();
  void Poke();
  // The connection is to end; OnDone comes.
  void Break();
  template <typename F>
  void After(absl::Duration delay, F then);

  const Options options_;
  ResumableEnd end_;

  Mutex mutex_;
  Connection connection_ ABSL_GUARDED_BY(mutex_);
  FeedRetries retries_ ABSL_GUARDED_BY(mutex_);
  absl::Status why_ ABSL_GUARDED_BY(mutex_);  // it ends, decided here and not by the connection
  bool closing_ ABSL_GUARDED_BY(mutex_) = false;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  bool poke_coming_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace mu
