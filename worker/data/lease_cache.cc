#include "worker/data/lease_cache.h"

#include <algorithm>

#include "common/base/signal_stack.h"

namespace mu {
namespace {

constexpr size_t kMaxWaiting = 64;
// Of one data set. A worker goes back to its own lease and to those that it helps with; more would
// fill its memory with what it has been through.
constexpr size_t kMaxUsed = 4;
// More than a worker has functions in flight that could start in another order.
constexpr int kMaxOvertaken = 4;

// An error that no other thread shares: Debian's Abseil counts its users where TSan does not look.
absl::Status OwnCopy(const absl::Status& error) {
  absl::Status copy(error.code(), error.message());
  error.ForEachPayload(
      [&](absl::string_view url, const absl::Cord& payload) { copy.SetPayload(url, payload); });
  return copy;
}

}  // namespace

LeaseCache::LeaseCache(int threads, size_t capacity_bytes) : capacity_bytes_(capacity_bytes) {
  for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { ReadAhead(); });
}

LeaseCache::~LeaseCache() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
    wanted_.SignalAll();
  }
  for (std::thread& thread : threads_) thread.join();
}

LeaseCache::Key LeaseCache::MakeKey(const DatasetReader* reader, const pb::LeaseProto& lease) {
  return {reader,
          lease.SerializeAsString()};  // no maps in it, so the same lease gives the same bytes
}

void LeaseCache::Prefetch(std::shared_ptr<DatasetReader> reader, const pb::LeaseProto& lease) {
  Key key = MakeKey(reader.get(), lease);
  MutexLock lock(&mutex_);
  if (threads_.empty()) return;
  if (const auto known = entries_.find(key); known != entries_.end()) {
    known->second->asked_for = ++ticks_;
    known->second->overtaken = 0;
    return;
  }
  while (queue_.size() >= kMaxWaiting) {
    const auto it = entries_.find(queue_.front());
    if (it != entries_.end() && it->second->state == State::kWanted) entries_.erase(it);
    queue_.pop_front();
  }
  auto entry = std::make_shared<Entry>(Entry{std::move(reader), lease});
  entry->asked_for = ++ticks_;
  entries_[key] = std::move(entry);
  queue_.push_back(std::move(key));
  wanted_.Signal();
}

absl::StatusOr<std::shared_ptr<const LeaseData>> LeaseCache::Get(
    std::shared_ptr<DatasetReader> reader, const pb::LeaseProto& lease) {
  const Key key = MakeKey(reader.get(), lease);
  EntryPtr entry;
  {
    MutexLock lock(&mutex_);
    EntryPtr& slot = entries_[key];
    if (slot == nullptr) slot = std::make_shared<Entry>(Entry{std::move(reader), lease});
    entry = slot;
    MarkUsed(key, entry.get());
    if (entry->state != State::kWanted) {
      while (entry->state != State::kRead) changed_.Wait(&mutex_);
      if (!entry->data.ok()) return OwnCopy(entry->data.status());
      return entry->data;
    }
    entry->state = State::kReading;
    // It waits in the queue because leases that nobody came for take the room: the oldest of them
    // goes.
    const auto queued = std::find(queue_.begin(), queue_.end(), key);
    if (queued != queue_.end()) {
      queue_.erase(queued);
      const auto oldest = Oldest(/*used=*/false);
      if (oldest != entries_.end() && !HasRoomToReadAhead()) Erase(oldest);
      wanted_.Signal();
    }
  }
  ReadEntry(key, entry);
  MutexLock lock(&mutex_);
  return entry->data;
}

void LeaseCache::Drop(const DatasetReader* reader) {
  MutexLock lock(&mutex_);
  for (auto it = entries_.begin(); it != entries_.end();) {
    const auto next = std::next(it);
    if (it->first.first == reader) {
      it->second->dropped = true;
      if (it->second->state != State::kReading) Erase(it);
    }
    it = next;
  }
  wanted_.SignalAll();
}

size_t LeaseCache::bytes() const {
  MutexLock lock(&mutex_);
  return bytes_;
}

bool LeaseCache::HasRoomToReadAhead() const {
  if (unused_bytes_ == 0 && reading_ahead_ == 0) return true;
  return unused_bytes_ + (reading_ahead_ + 1) * last_bytes_ <= capacity_bytes_;
}

void LeaseCache::ReadAhead() {
  const SignalStack signal_stack;
  while (true) {
    Key key;
    EntryPtr entry;
    {
      MutexLock lock(&mutex_);
      while (!stopping_ && (queue_.empty() || !HasRoomToReadAhead())) wanted_.Wait(&mutex_);
      if (stopping_) return;
      key = std::move(queue_.front());
      queue_.pop_front();
      const auto it = entries_.find(key);
      if (it == entries_.end() || it->second->state != State::kWanted) continue;
      entry = it->second;
      entry->state = State::kReading;
      ++reading_ahead_;
    }
    ReadEntry(key, entry);
    MutexLock lock(&mutex_);
    --reading_ahead_;
    wanted_.SignalAll();
  }
}

void LeaseCache::ReadEntry(const Key& key, const EntryPtr& entry) {
  absl::StatusOr<std::shared_ptr<const LeaseData>> data = entry->reader->Read(entry->lease);
  MutexLock lock(&mutex_);
  entry->data = std::move(data);
  entry->state = State::kRead;
  entry->touched = ++ticks_;
  changed_.SignalAll();
  if (!entry->data.ok() || entry->dropped) {
    entries_.erase(key);
    return;
  }
  last_bytes_ = (*entry->data)->bytes();
  bytes_ += last_bytes_;
  if (!entry->used) unused_bytes_ += last_bytes_;
  ForgetUsed(key.first);
  while (bytes_ > capacity_bytes_) {
    auto victim = Oldest(/*used=*/true);
    // Nothing used is left: of what was read ahead the last goes first, it is needed last.
    if (victim == entries_.end()) victim = entries_.find(key);
    if (victim == entries_.end()) break;
    Erase(victim);
  }
}

void LeaseCache::ForgetUsed(const DatasetReader* reader) {
  std::vector<std::pair<uint64_t, Key>> used;
  for (const auto& [key, entry] : entries_) {
    if (key.first == reader && entry->state == State::kRead && entry->used)
      used.emplace_back(entry->touched, key);
  }
  if (used.size() <= kMaxUsed) return;
  std::sort(used.begin(), used.end());
  for (size_t i = 0; i + kMaxUsed < used.size(); ++i) Erase(entries_.find(used[i].second));
}

void LeaseCache::ForgetOvertaken(const DatasetReader* reader, uint64_t asked_for) {
  std::vector<Key> gone;
  for (const auto& [key, entry] : entries_) {
    if (key.first != reader || entry->used || entry->asked_for >= asked_for) continue;
    if (++entry->overtaken >= kMaxOvertaken && entry->state != State::kReading) gone.push_back(key);
  }
  for (const Key& key : gone) Erase(entries_.find(key));
  if (!gone.empty()) wanted_.SignalAll();
}

void LeaseCache::MarkUsed(const Key& key, Entry* entry) {
  entry->touched = ++ticks_;
  if (entry->used) return;
  entry->used = true;
  ForgetOvertaken(key.first, entry->asked_for);
  if (entry->state == State::kRead && entry->data.ok()) {
    unused_bytes_ -= (*entry->data)->bytes();
    wanted_.SignalAll();
  }
}

void LeaseCache::Erase(Entries::iterator it) {
  const Entry& entry = *it->second;
  if (entry.state == State::kRead && entry.data.ok()) {
    bytes_ -= (*entry.data)->bytes();
    if (!entry.used) unused_bytes_ -= (*entry.data)->bytes();
  }
  entries_.erase(it);
}

LeaseCache::Entries::iterator LeaseCache::Oldest(bool used) {
  auto oldest = entries_.end();
  for (auto it = entries_.begin(); it != entries_.end(); ++it) {
    const Entry& entry = *it->second;
    if (entry.state != State::kRead || entry.used != used) continue;
    if (oldest == entries_.end() || entry.touched < oldest->second->touched) oldest = it;
  }
  return oldest;
}

}  // namespace mu
