#include "common/rpc/resumable_end.h"

#include <utility>
#include <vector>

#include "proto/worker.pb.h"

namespace mu {
namespace {

Buffer Marked(uint64_t number, uint64_t received, const std::string& body) {
  muster::FeedMark mark;
  mark.set_number(number);
  mark.set_received(received);
  std::string bytes;
  bytes.reserve(mark.ByteSizeLong() + body.size());
  mark.AppendToString(&bytes);
  bytes += body;
  return Buffer(std::move(bytes));
}

}  // namespace

void ResumableEnd::Add(size_t bytes, Part append) {
  MutexLock lock(&mutex_);
  waiting_.push_back({bytes, std::move(append)});
}

void ResumableEnd::Connect(uint64_t connection, std::string first, bool greets) {
  MutexLock lock(&mutex_);
  connection_ = connection;
  first_ = std::move(first);
  greets_ = greets;
  stream_.Reconnect();
}

bool ResumableEnd::Next(uint64_t connection, Buffer* message) {
  MutexLock making(&making_);
  std::vector<Waiting> parts;
  {
    MutexLock lock(&mutex_);
    if (connection != connection_) return false;
    if (!first_.empty()) {
      *message = Buffer(std::exchange(first_, std::string()));
      return true;
    }
    if (const Stream::Numbered* again = stream_.Write()) {
      greets_ = false;
      *message = Marked(again->number, stream_.Confirm(), again->message);
      return true;
    }
    if (waiting_.empty() || !stream_.has_room()) {
      if (!std::exchange(greets_, false) && !stream_.owes_confirmation()) return false;
      *message = Marked(0, stream_.Confirm(), {});
      return true;
    }
    size_t bytes = 0;
    while (!waiting_.empty() &&
           (parts.empty() || bytes + waiting_.front().bytes <= kMessageBytes)) {
      bytes += waiting_.front().bytes;
      parts.push_back(std::move(waiting_.front()));
      waiting_.pop_front();
    }
  }
  // A part may have more than was said of it: then it goes in a message of its own.
  std::vector<std::string> bodies(1);
  for (const Waiting& part : parts) {
    std::string& body = bodies.back();
    const size_t before = body.size();
    part.append(&body);
    if (before == 0 || body.size() <= kMessageBytes) continue;
    std::string own = body.substr(before);
    body.resize(before);
    bodies.push_back(std::move(own));
  }
  parts.clear();
  MutexLock lock(&mutex_);
  for (std::string& body : bodies) {
    const size_t bytes = body.size();
    stream_.Add(std::move(body), bytes);
  }
  if (connection != connection_) return false;  // the new one writes it
  greets_ = false;
  const Stream::Numbered* const made = stream_.Write();
  *message = Marked(made->number, stream_.Confirm(), made->message);
  return true;
}

absl::StatusOr<ResumableEnd::Verdict> ResumableEnd::Receive(uint64_t connection, uint64_t number,
                                                            uint64_t received, size_t bytes) {
  MutexLock lock(&mutex_);
  if (connection != connection_) return Verdict::kDrop;
  if (const absl::Status confirmed = stream_.Confirmed(received); !confirmed.ok()) return confirmed;
  if (number == 0) return Verdict::kDrop;
  switch (stream_.Receive(number, bytes)) {
    case Stream::Arrival::kNew:
      return Verdict::kHandle;
    case Stream::Arrival::kRepeat:
      return Verdict::kDrop;
    case Stream::Arrival::kGap:
      break;
  }
  return Verdict::kBroken;
}

absl::Status ResumableEnd::Confirmed(uint64_t received) {
  MutexLock lock(&mutex_);
  return stream_.Confirmed(received);
}

uint64_t ResumableEnd::received() const {
  MutexLock lock(&mutex_);
  return stream_.received();
}

bool ResumableEnd::wants_to_write() const {
  MutexLock lock(&mutex_);
  return stream_.owes_confirmation() || (!waiting_.empty() && stream_.has_room());
}

size_t ResumableEnd::unconfirmed_bytes() const {
  MutexLock lock(&mutex_);
  return stream_.unconfirmed_bytes();
}

}  // namespace mu
