// One end of a stream that outlives its connections: ResumableStream with what waits to be said,
// and messages as bytes. Thread safe.
//
// A message is a protobuf message whose fields 1 and 2 are FeedMark's. It is made of parts, each
// the bytes of some of its fields, when the connection can take it: all that are there by then go
// together.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/mutex.h"
#include "common/base/resumable_stream.h"
#include "common/rpc/buffer.h"

namespace mu {

// Parts share a message while they have no more bytes than this together.
inline constexpr size_t kMessageBytes = size_t{256} << 10;
// More than a message has beside its parts, and a part beside what its maker measures.
inline constexpr size_t kMessageOverhead = 1024;

class ResumableEnd {
 public:
  using Stream = ResumableStream<std::string>;
  // Appends some fields of the message, serialised.
  using Part = std::function<void(std::string* message)>;

  explicit ResumableEnd(Stream::Options options = {}) : stream_(options) {}

  // `append` is called once, on the thread that writes, in the order of the calls of Add. `bytes`:
  // about as many as it appends. A part is never divided: who adds it keeps it kMessageOverhead
  // below the transport's limit of a message.
  void Add(size_t bytes, Part append);

  // From now on `connection`, of a number that was not used before, is the one that carries the
  // messages. It begins with `first`, unless that is empty, and says what has been received even
  // if there is nothing else to say, if `greets`.
  void Connect(uint64_t connection, std::string first, bool greets);
  // Conversation::next of this connection. False also if another one has taken its place.
  bool Next(uint64_t connection, Buffer* message);

  enum class Verdict {
    kHandle,
    kDrop,   // received before, of an older connection, or with nothing in it
    kBroken  // a message is missing: this connection is of no more use
  };
  // A message has come on this connection, of `bytes`. INVALID_ARGUMENT: it makes no sense.
  absl::StatusOr<Verdict> Receive(uint64_t connection, uint64_t number, uint64_t received,
                                  size_t bytes);
  // The other end says, in another way, what it has received. INVALID_ARGUMENT.
  absl::Status Confirmed(uint64_t received);
  uint64_t received() const;
  // There is something to write: the connection is to be poked. To be asked after Receive, which
  // may make room and which may be what the other end ought to hear of.
  bool wants_to_write() const;
  size_t unconfirmed_bytes() const;

 private:
  struct Waiting {
    size_t bytes;
    Part append;
  };

  // Held while a message is made: there may be a new connection meanwhile.
  Mutex making_ ABSL_ACQUIRED_BEFORE(mutex_);
  mutable Mutex mutex_;
  Stream stream_ ABSL_GUARDED_BY(mutex_);
  std::deque<Waiting> waiting_ ABSL_GUARDED_BY(mutex_);
  uint64_t connection_ ABSL_GUARDED_BY(mutex_) = 0;
  std::string first_ ABSL_GUARDED_BY(mutex_);  // not written yet
  bool greets_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace mu
