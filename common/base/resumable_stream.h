// The rules by which one end of a stream in both directions loses nothing and repeats nothing,
// although the connections that carry it break. Each end numbers its messages from 1, keeps those
// that the other end has not confirmed, and sends them again on the next connection; it drops what
// it has received before. The unconfirmed ones are bounded in bytes. Pure: no clock, thread, lock
// or socket; both ends of the product and of the simulation use it. Not synchronised.
//
// A connection carries messages in order. A message that it loses is lost with all that follows it
// on this connection: a gap in the numbers says that a connection is of no more use.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/stream_protections.h"

namespace mu {

template <typename Message>
class ResumableStream {
 public:
  struct Options {
    size_t window_bytes = size_t{4} << 20;    // unconfirmed; one message may exceed it
    size_t confirm_bytes = size_t{64} << 10;  // received without having said so
  };
  struct Numbered {
    uint64_t number = 0;
    Message message;
    size_t bytes = 0;
  };
  enum class Arrival {
    kNew,
    kRepeat,  // received before: to be dropped
    kGap,     // one before it is missing: the connection is to be given up
  };

  ResumableStream() : ResumableStream(Options()) {}
  explicit ResumableStream(Options options) : options_(options) {}

  // Sending. False: what is unconfirmed fills the window; what there is to say has to wait.
  bool has_room() const { return unconfirmed_bytes_ < options_.window_bytes; }
  // Numbers a message and keeps it; Write gives it out in its turn.
  void Add(Message message, size_t bytes) {
    unconfirmed_.push_back({next_++, std::move(message), bytes});
    unconfirmed_bytes_ += bytes;
  }
  // The next message to write on this connection; null: all are written. Valid until the next call.
  const Numbered* Write() {
    if (written_ == unconfirmed_.size()) return nullptr;
    return &unconfirmed_[written_++];
  }

  // Receiving. kNew: it counts as received, and is to be handled now.
  Arrival Receive(uint64_t number, size_t bytes) {
    if (MU_STREAM_BROKEN(repeats_taken)) return Arrival::kNew;
    if (number <= received_) return Arrival::kRepeat;
    if (number > received_ + 1) return Arrival::kGap;
    received_ = number;
    unsaid_bytes_ += bytes;
    return Arrival::kNew;
  }
  uint64_t received() const { return received_; }
  // Even if there is nothing else to say, the other end should hear what was received.
  bool owes_confirmation() const { return unsaid_bytes_ >= options_.confirm_bytes; }
  // What is to be written with each message: the last number received.
  uint64_t Confirm() {
    unsaid_bytes_ = 0;
    return MU_STREAM_BROKEN(confirmed_early) ? received_ + 1 : received_;
  }

  // The other end has received all up to this number. INVALID_ARGUMENT, and nothing changes, if
  // that was never sent.
  absl::Status Confirmed(uint64_t number) {
    if (number >= next_ && !MU_STREAM_BROKEN(confirmed_early)) {
      return absl::InvalidArgumentError(absl::StrCat("message ", number,
                                                     " of a stream is confirmed, but ", next_ - 1,
                                                     " is the last one sent"));
    }
    while (!unconfirmed_.empty() && unconfirmed_.front().number <= number) {
      unconfirmed_bytes_ -= unconfirmed_.front().bytes;
      unconfirmed_.pop_front();
      if (written_ > 0) --written_;
    }
    return absl::OkStatus();
  }
  // There is a new connection, on which nothing has been written.
  void Reconnect() {
    if (!MU_STREAM_BROKEN(not_sent_again)) written_ = 0;
  }

  size_t unconfirmed() const { return unconfirmed_.size(); }
  size_t unconfirmed_bytes() const { return unconfirmed_bytes_; }

 private:
  Options options_;
  std::deque<Numbered> unconfirmed_;
  size_t unconfirmed_bytes_ = 0;
  size_t written_ = 0;  // of `unconfirmed_`, on this connection
  uint64_t next_ = 1;
  uint64_t received_ = 0;
  size_t unsaid_bytes_ = 0;  // received since the other end was told last
};

}  // namespace mu
