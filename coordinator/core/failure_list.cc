#include "coordinator/core/failure_list.h"

#include <utility>

namespace mu {

size_t FailureList::Add(MemberFailure failure, const std::function<void(size_t)>& unlisted) {
  const size_t number = added_++;
  failure.number = number;
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
  (failure.kind == "left" ? unlisted_.left : unlisted_.failures) += 1;
  unlisted_.steps_repeated += failure.steps_repeated;
  unlisted_.samples_repeated += failure.samples_repeated;
  unlisted_.updates_rolled_back += failure.updates_rolled_back;
  if (failure.role != pb::ROLE_PSSERVER) return;
  ++unlisted_.servers;
  if (failure.recovered_seconds >= 0) {
    unlisted_.without_progress_seconds += failure.recovered_seconds;
  } else {
    ++waiting_;
    waiting_since_ += failure.at_seconds;
  }
}

MemberFailure* FailureList::Find(size_t number) {
  if (number < first_.size()) return &first_[number];
  const size_t from_end = added_ - number;  // 1: the newest
  return from_end <= last_.size() ? &last_[last_.size() - from_end] : nullptr;
}

FailureCosts& FailureList::CostsOf(size_t number) {
  MemberFailure* const failure = Find(number);
  return failure != nullptr ? static_cast<FailureCosts&>(*failure) : unlisted_;
}

void FailureList::Recovered(size_t number, double now) {
  MemberFailure* const failure = Find(number);
  if (failure == nullptr || failure->recovered_seconds >= 0) return;
  failure->recovered_seconds = now - failure->at_seconds;
}

void FailureList::ServersBack(double now, const std::function<void(const MemberFailure&)>& back) {
  unlisted_.without_progress_seconds += static_cast<double>(waiting_) * now - waiting_since_;
  waiting_ = 0;
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
