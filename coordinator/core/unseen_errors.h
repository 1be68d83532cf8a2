// Which error users are told: one of training, one of each group, each once. Pure.
//
// The first error of training, or of a group, waits until one of Schedule, Join, Done or a Fetch of
// a refused call has shown it. Those that come before that are not told.
#pragma once

#include <map>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "coordinator/core/group_id.h"

namespace mu {

// `Error` is made of a `status`. Its Report() returns that and sets `reported`, at any time: a
// refused call's value may be looked at on another thread.
template <typename Error>
class UnseenErrors {
 public:
  void GroupMade(GroupId group) { errors_.try_emplace(group); }
  void GroupDropped(GroupId group) { errors_.erase(group); }

  // The error that nobody has seen; null: none.
  std::shared_ptr<Error> Unseen(GroupId group) const {
    const auto it = errors_.find(group);
    if (it == errors_.end() || it->second == nullptr || it->second->reported) return nullptr;
    return it->second;
  }
  // Something has failed, or is refused: the error that is told for it. It is kept until somebody
  // has seen it, unless the group is over: then only the caller can show it.
  std::shared_ptr<Error> Failed(GroupId group, absl::Status status) {
    if (auto unseen = Unseen(group)) return unseen;
    auto error = std::make_shared<Error>(std::move(status));
    if (const auto it = errors_.find(group); it != errors_.end()) it->second = error;
    return error;
  }
  // What somebody who waits for the group is told: the error that nobody has seen, else `ended`,
  // with which everything has ended, or OK. `closed`: whoever ends everything asks for no errors.
  absl::Status Tell(GroupId group, bool closed, const absl::Status& ended) {
    const auto error = closed ? nullptr : Unseen(group);
    return error == nullptr ? ended : error->Report();
  }

 private:
  std::map<GroupId, std::shared_ptr<Error>> errors_ = {{GroupId(), nullptr}};  // perhaps seen
};

}  // namespace mu
