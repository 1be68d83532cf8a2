#include "coordinator/core/membership.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/error_kind.h"

namespace mu {

std::string Describe(const Member& member) {
  return absl::StrCat(member.role == pb::ROLE_WORKER ? "worker " : "server ", member.index,
                      " (pid ", member.pid, ", ", member.address, ")");
}

namespace {

constexpr size_t kFormer = 1000;  // a process that was lost longer ago will not wake up

}  // namespace

absl::StatusOr<Membership::Registered> Membership::Register(const pb::RegisterRequest& request,
                                                            absl::Time now) {
  const pb::Role role = request.role();
  if ((role != pb::ROLE_WORKER && role != pb::ROLE_PSSERVER) || request.address().empty() ||
      request.incarnation() == 0) {
    return absl::InvalidArgumentError("a registration needs a role, an address and an incarnation");
  }
  const Incarnation incarnation(request.incarnation());
  for (const auto& [expelled, refusal] : expelled_) {
    if (expelled == incarnation) return refusal;
  }
  Registered result;
  for (auto& [key, member] : members_) {
    if (member.role == role && member.incarnation == incarnation) {
      member.last_heartbeat = now;
      member.silent = absl::ZeroDuration();
      result.member = member;
      result.known = true;
      return result;
    }
  }
  MU_ASSIGN_OR_RETURN(const uint32_t index, IndexFor(request));
  const auto taken = members_.find({role, index});
  if (taken != members_.end() &&
      std::find(former_.begin(), former_.end(), incarnation) != former_.end()) {
    return WithKind(absl::FailedPreconditionError(absl::StrCat(
                        "this daemon was lost and the process with pid ", taken->second.pid, " at ",
                        taken->second.address, " has taken its place; it must end")),
                    pb::ERROR_STALE, role, index);
  }
  Member member{role,           index,         incarnation,    request.address(),
                request.host(), request.pid(), request.http(), now};
  member.last_progress = now;
  if (taken != members_.end()) {
    result.replaced = taken->second;
    Forget(taken->second);
  }
  if (taken == members_.end()) ++CountOf(role);
  members_[{role, index}] = member;
  result.member = member;
  return result;
}

absl::StatusOr<uint32_t> Membership::IndexFor(const pb::RegisterRequest& request) {
  const pb::Role role = request.role();
  const bool names_one = request.index() >= 0;
  uint32_t index = names_one ? static_cast<uint32_t>(request.index()) : 0;
  const bool is_place = role == pb::ROLE_WORKER || index < options_.expected_servers;
  // A coordinator that was started again does not know to whom an older one gave an index: another
  // process may have been quicker. Who can do without it leaves it to that one.
  const bool any =
      !names_one || (request.may_move() && (!is_place || members_.contains({role, index})));
  if (role == pb::ROLE_WORKER) {
    // An index that somebody wished for, or had, is kept. No other one is given twice by this
    // coordinator. Who had one that is taken gets none that another one had, who is still to come:
    // else one newcomer would move them all.
    if (any) index = names_one ? std::max(next_worker_, options_.expected_workers) : next_worker_;
    next_worker_ = std::max(next_worker_, index + 1);
    return index;
  }
  if (!any) {
    if (is_place) return index;
    return absl::InvalidArgumentError(
        absl::StrCat("a server asks for index ", index, " but the cluster has ",
                     options_.expected_servers, " servers; start it with a smaller --index"));
  }
  for (index = 0; index < options_.expected_servers; ++index) {
    if (!members_.contains({role, index})) return index;
  }
  return absl::ResourceExhaustedError(
      absl::StrCat("all ", options_.expected_servers, " places of servers are taken"));
}

absl::Status Membership::Heartbeat(const pb::HeartbeatRequest& request, absl::Time now) {
  const auto it = members_.find({request.role(), request.index()});
  if (it == members_.end() || it->second.incarnation != Incarnation(request.incarnation())) {
    return absl::NotFoundError(
        "this daemon is not a member of the cluster (any more); it must register again");
  }
  Member& member = it->second;
  member.last_heartbeat = now;
  member.silent = absl::ZeroDuration();
  if (!request.busy() || request.moved_bytes() != member.moved_bytes) {
    member.last_progress = now;
    member.stalled = absl::ZeroDuration();
    member.moved_bytes = request.moved_bytes();
  }
  return absl::OkStatus();
}

std::optional<Member> Membership::Remove(const Member& member) {
  const auto it = members_.find({member.role, member.index});
  if (it == members_.end() || it->second.incarnation != member.incarnation) return std::nullopt;
  Member removed = it->second;
  members_.erase(it);
  --CountOf(removed.role);
  Forget(removed);
  return removed;
}

std::optional<Member> Membership::Expel(const Member& member, absl::Status refusal) {
  std::optional<Member> expelled = Remove(member);
  if (!expelled.has_value()) return std::nullopt;
  expelled_.emplace_back(expelled->incarnation, std::move(refusal));
  if (expelled_.size() > kFormer) expelled_.pop_front();
  return expelled;
}

void Membership::Forget(const Member& member) {
  former_.push_back(member.incarnation);
  if (former_.size() > kFormer) former_.pop_front();
}

std::vector<Member> Membership::Expire(absl::Time now) {
  const absl::Duration ran = std::min(now - expired_at_.value_or(now), 2 * options_.heartbeat);
  expired_at_ = now;
  std::vector<Member> lost;
  for (auto it = members_.begin(); it != members_.end();) {
    // Not more than there was since the heartbeat, which may have come in the middle of an
    // interval.
    it->second.silent = std::min(it->second.silent + ran, now - it->second.last_heartbeat);
    it->second.stalled = std::min(it->second.stalled + ran, now - it->second.last_progress);
    if (it->second.silent > options_.timeout) {
      lost.push_back(it->second);
      Forget(it->second);
      --CountOf(it->second.role);
      it = members_.erase(it);
    } else {
      ++it;
    }
  }
  return lost;
}

std::vector<Member> Membership::Stalled() const {
  std::vector<Member> stalled;
  for (const auto& [key, member] : members_) {
    // Nobody knows what it has done since its last heartbeat.
    if (member.stalled - member.silent > kMostSilences * options_.timeout)
      stalled.push_back(member);
  }
  return stalled;
}

std::vector<Member> Membership::All() const {
  std::vector<Member> all;
  for (const auto& [key, member] : members_) all.push_back(member);
  return all;
}

std::vector<Member> Membership::Servers() const {
  std::vector<Member> servers = All();
  std::erase_if(servers, [](const Member& member) { return member.role != pb::ROLE_PSSERVER; });
  return servers;
}

std::optional<Member> Membership::Find(pb::Role role, uint32_t index) const {
  const auto it = members_.find({role, index});
  if (it == members_.end()) return std::nullopt;
  return it->second;
}

}  // namespace mu
