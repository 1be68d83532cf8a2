#include "coordinator/core/failure_list.h"

#include <algorithm>
#include <utility>

namespace mu {

size_t FailureList::Add(MemberFailure failure, const std::function<void(size_t)>& unlisted) {
  const size_t number = added_++;
  failure.number = number;
  if (failure.role == pb::ROLE_PSSERVER && !servers_missing_since_.has_value())
    servers_missing_since_ = failure.at_seconds;
  if (first_.size() < most_first_) {
    first_.push_back(std::move(failure));
    return number;
  }
  last_.push_back(std::move(failure));
  if (last_.size() > most_last_) {
    Unlist(last_.front());
    last_.pop_front();
    unlisted(number - most_last_);
  }
  return number;
}

void FailureList::Unlist(const MemberFailure& failure) {
  RoleFailures& role = UnlistedOf(failure.role);
  const bool left = failure.kind == "left";
  (left ? role.left : role.failures) += 1;
  role.steps_repeated += failure.steps_repeated;
  role.samples_repeated += failure.samples_repeated;
  role.updates_rolled_back += failure.updates_rolled_back;
  if (failure.recovered_seconds >= 0) {
    role.recovered += left ? 0 : 1;
    role.recovery_seconds += failure.recovered_seconds;
    role.longest_recovery_seconds =
        std::max(role.longest_recovery_seconds, failure.recovered_seconds);
  } else if (failure.role == pb::ROLE_PSSERVER) {
    // Failures leave the list in the order in which they came.
    if (waiting_ == 0) waiting_first_ = failure.at_seconds;
    ++waiting_;
    waiting_left_ += left ? 1 : 0;
    waiting_since_ += failure.at_seconds;
  }
}

UnlistedFailures FailureList::unlisted() const {
  UnlistedFailures sum;
  sum.of_workers = unlisted_workers_;
  sum.of_servers = unlisted_servers_;
  for (const RoleFailures* role : {&unlisted_workers_, &unlisted_servers_}) {
    sum.failures += role->failures;
    sum.left += role->left;
    sum.steps_repeated += role->steps_repeated;
    sum.samples_repeated += role->samples_repeated;
    sum.updates_rolled_back += role->updates_rolled_back;
  }
  sum.servers = unlisted_servers_.failures + unlisted_servers_.left;
  return sum;
}

MemberFailure* FailureList::Find(size_t number) {
  if (number < first_.size()) return &first_[number];
  const size_t from_end = added_ - number;  // 1: the newest
  return from_end <= last_.size() ? &last_[last_.size() - from_end] : nullptr;
}

FailureCosts& FailureList::CostsOf(size_t number, pb::Role role) {
  MemberFailure* const failure = Find(number);
  return failure != nullptr ? static_cast<FailureCosts&>(*failure) : UnlistedOf(role);
}

void FailureList::Recovered(size_t number, double now) {
  MemberFailure* const failure = Find(number);
  if (failure == nullptr || failure->recovered_seconds >= 0) return;
  failure->recovered_seconds = now - failure->at_seconds;
}

void FailureList::ServersBack(double now, const std::function<void(const MemberFailure&)>& back) {
  if (waiting_ > 0) {
    RoleFailures& servers = unlisted_servers_;
    servers.recovered += waiting_ - waiting_left_;
    servers.recovery_seconds += static_cast<double>(waiting_) * now - waiting_since_;
    servers.longest_recovery_seconds =
        std::max(servers.longest_recovery_seconds, now - waiting_first_);
  }
  if (servers_missing_since_.has_value())
    without_progress_seconds_ += now - *servers_missing_since_;
  servers_missing_since_.reset();
  waiting_ = 0;
  waiting_left_ = 0;
  waiting_since_ = 0;
  const auto recover = [&](MemberFailure& failure) {
    if (failure.role != pb::ROLE_PSSERVER || failure.recovered_seconds >= 0) return;
    failure.recovered_seconds = now - failure.at_seconds;
    back(failure);
  };
  for (MemberFailure& failure : first_) recover(failure);
  for (MemberFailure& failure : last_) recover(failure);
}

std::vector<MemberFailure> FailureList::Listed() const {
  std::vector<MemberFailure> listed = first_;
  listed.insert(listed.end(), last_.begin(), last_.end());
  return listed;
}

void FailureList::VisitListed(const std::function<bool(MemberFailure&)>& visit) {
  for (auto it = last_.rbegin(); it != last_.rend(); ++it) {
    if (!visit(*it)) return;
  }
  for (auto it = first_.rbegin(); it != first_.rend(); ++it) {
    if (!visit(*it)) return;
  }
}

}  // namespace mu
