// Who belongs to the cluster: registration, heartbeats, loss. A pure state machine; time is handed
// in.
//
// A daemon that registers again under an index takes its place with a new incarnation; what was
// known of the older one is over. Workers are numbered as they come; a server has a fixed index
// below `expected_servers`. Daemons that had an index with an older coordinator ask for it; one
// that may move, a worker or a server that holds nothing, takes it from nobody.
//
// Two ways to be lost: no heartbeat for `timeout`, or heartbeats of a server that say for three of
// them that its work (a save, a restore) moves no byte. Time in which the coordinator was stopped
// counts for neither.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/ids.h"
#include "common/base/status.h"
#include "proto/coordinator.pb.h"

namespace mu {

struct Member {
  pb::Role role = pb::ROLE_UNSPECIFIED;
  uint32_t index = 0;
  Incarnation incarnation;
  std::string address;
  std::string host;
  int64_t pid = 0;
  std::string http;  // where it serves metrics; empty: nowhere
  absl::Time last_heartbeat;
  absl::Duration silent;  // since then, as far as the coordinator ran
  // The last heartbeat that found it idle or said that its work had moved, and the time since then.
  absl::Time last_progress;
  absl::Duration stalled;
  uint64_t moved_bytes = 0;
};
// "worker 3 (pid 12, 10.0.0.1:2222)".
std::string Describe(const Member& member);

// A server whose heartbeats arrive and that does nothing else for so many timeouts is replaced.
inline constexpr int kMostSilences = 3;

class Membership {
 public:
  struct Options {
    uint32_t expected_servers = 1;
    absl::Duration heartbeat = absl::Milliseconds(250);
    absl::Duration timeout = absl::Seconds(10);  // without a heartbeat a daemon is lost
    uint32_t expected_workers = 0;               // that an older coordinator numbered, about
  };
  explicit Membership(Options options) : options_(options) {}

  struct Registered {
    Member member;
    std::optional<Member> replaced;  // another incarnation that had the index
    bool known = false;              // the same incarnation asks again
  };
  // RESOURCE_EXHAUSTED for a server when all places are taken by live ones; INVALID_ARGUMENT for
  // nonsense; FAILED_PRECONDITION (ERROR_STALE) for one that was lost, and wakes up when another
  // process has its place; or the refusal of one that was expelled.
  absl::StatusOr<Registered> Register(const pb::RegisterRequest& request, absl::Time now);
  // NOT_FOUND if this incarnation is not a member (any more): it must register again.
  absl::Status Heartbeat(const pb::HeartbeatRequest& request, absl::Time now);
  // Removes a member; nothing if another incarnation has the place by now.
  std::optional<Member> Remove(const Member& member);
  // The same; this incarnation may not register again: `refusal` is the answer.
  std::optional<Member> Expel(const Member& member, absl::Status refusal);
  // To be called at every heartbeat interval, after the messages that have arrived were handled.
  // Removes and returns those whose heartbeats have stopped. A call counts at most two intervals of
  // silence: if the coordinator itself was stopped for longer, that is nobody's silence.
  std::vector<Member> Expire(absl::Time now);
  // Servers that are members and whose work has stalled, as far as their heartbeats and the last
  // Expire tell.
  std::vector<Member> Stalled() const;

  std::vector<Member> All() const;
  std::vector<Member> Servers() const;
  std::optional<Member> Find(pb::Role role, uint32_t index) const;
  size_t Count(pb::Role role) const { return role == pb::ROLE_WORKER ? workers_ : servers_; }

 private:
  using Key = std::pair<pb::Role, uint32_t>;
  const Options options_;
  // For one that is no member.
  absl::StatusOr<uint32_t> IndexFor(const pb::RegisterRequest& request);
  void Forget(const Member& member);
  size_t& CountOf(pb::Role role) { return role == pb::ROLE_WORKER ? workers_ : servers_; }
  std::map<Key, Member> members_;
  size_t workers_ = 0, servers_ = 0;      // of them
  std::optional<absl::Time> expired_at_;  // the last call of Expire
  std::deque<Incarnation> former_;        // the latest of those that were members
  std::deque<std::pair<Incarnation, absl::Status>> expelled_;  // the latest, and their refusals
  uint32_t next_worker_ = 0;
};

}  // namespace mu
