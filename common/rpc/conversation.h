// What one end of a stream in both directions says and hears.
#pragma once

#include <functional>

#include "common/rpc/buffer.h"

namespace mu {

struct Conversation {
  // Gives the next message to be written; false: there is none, until the stream is poked again.
  // Asked when the message before has left, by one thread at a time: so several things that are
  // there to be said by then can go in one message. It may be asked from within a Poke.
  std::function<bool(Buffer* message)> next;
  // Each message of the other end, in order, one at a time. Must not block.
  std::function<void(Buffer message)> message;
};

}  // namespace mu
