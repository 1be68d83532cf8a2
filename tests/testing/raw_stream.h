// A stream in both directions that says given bytes and hears nothing.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <utility>

#include "common/base/mutex.h"
#include "common/rpc/transport.h"

namespace mu::testing {

// Says these messages, at least one, and returns with what the callee ends the stream.
inline absl::Status EndOfStream(Channel& channel, const std::string& method,
                                std::deque<Buffer> messages) {
  struct Stream {
    Mutex mutex;
    std::deque<Buffer> left ABSL_GUARDED_BY(mutex);
    absl::Status status;
    Notification done;
  };
  const auto stream = std::make_shared<Stream>();
  {
    MutexLock lock(&stream->mutex);
    stream->left = std::move(messages);
  }
  const auto call = channel.Converse(method,
                                     {[stream](Buffer* message) {
                                        MutexLock lock(&stream->mutex);
                                        if (stream->left.empty()) return false;
                                        *message = std::move(stream->left.front());
                                        stream->left.pop_front();
                                        return true;
                                      },
                                      [](Buffer) {}},
                                     [stream](absl::Status status) {
                                       stream->status = std::move(status);
                                       stream->done.Notify();
                                     });
  call->Poke();
  stream->done.Wait();
  return stream->status;
}

template <typename Message>
Buffer Serialized(const Message& message) {
  return Buffer(message.SerializeAsString());
}

}  // namespace mu::testing
