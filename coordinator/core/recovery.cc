#include "coordinator/core/recovery.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace mu {

using Kind = RecoveryAction::Kind;

std::string ToString(const RecoveryAction& action) {
  const std::string from = action.checkpoint == kInitialValues
                               ? "initial values"
                               : absl::StrCat("checkpoint ", action.checkpoint.value());
  switch (action.kind) {
    case Kind::kPause:
      return "pause";
    case Kind::kRollBack:
      return absl::StrCat("roll back to ", from);
    case Kind::kRestore:
      return absl::StrCat("restore server ", action.server, " from ", from, " in generation ",
                          action.generation.value());
    case Kind::kKeep:
      return absl::StrCat("keep server ", action.server, " in generation ",
                          action.generation.value());
    case Kind::kTakeCheckpoint:
      return absl::StrCat("take a checkpoint in generation ", action.generation.value());
    case Kind::kLetGo:
      return absl::StrCat("let server ", action.server, " go");
    case Kind::kReplace:
      return absl::StrCat("replace server ", action.server);
    case Kind::kResume:
      return absl::StrCat("resume in generation ", action.generation.value());
    case Kind::kGiveUp:
      return "give up";
  }
  return "?";
}

Recovery::Actions Recovery::Start(Generation generation, std::vector<CheckpointNumber> points) {
  if (started_) return {};
  started_ = true;
  generation_ = generation;
  points_ = std::move(points);
  if (absent_.empty()) return {};
  lost_ = absent_;
  return Pause();
}

void Recovery::Committed(CheckpointNumber checkpoint) {
  points_.push_back(checkpoint);
  if (points_.size() > options_.points) points_.erase(points_.begin());
}

Recovery::Actions Recovery::Loaded(Generation generation, CheckpointNumber point) {
  generation_ = std::max(generation_, generation);
  points_ = {point};
  Actions actions;
  if (pending_.empty()) return actions;
  pending_.clear();
  BeginRound(&actions);
  return actions;
}

Recovery::Actions Recovery::Pause() {
  if (paused_) return {};
  paused_ = true;
  covered_ = false;
  rolled_back_.reset();
  return {{Kind::kPause}};
}

Recovery::Actions Recovery::ServerLost(uint32_t server) {
  absent_.insert(server);
  if (!started_ || gave_up_) return {};
  Actions actions = Pause();  // while covered_, nothing has run since: this loss is covered as well
  lost_.insert(server);
  leaving_.erase(server);
  pending_.clear();
  failed_ = false;
  return actions;
}

Recovery::Actions Recovery::StateLost() {
  if (!started_ || gave_up_) return {};
  Actions actions = Pause();
  for (uint32_t server = 0; server < options_.servers; ++server) lost_.insert(server);
  covered_ = false;
  state_lost_ = true;
  rolled_back_.reset();
  pending_.clear();
  BeginRound(&actions);
  return actions;
}

Recovery::Actions Recovery::ServerReady(uint32_t server) {
  absent_.erase(server);
  Actions actions;
  if (started_ && paused_ && lost_.contains(server)) BeginRound(&actions);
  return actions;
}

void Recovery::BeginRound(Actions* actions) {
  if (!absent_.empty() || !pending_.empty() || taking_ || gave_up_) return;
  failed_ = false;
  if (points_.empty()) {
    gave_up_ = true;
    actions->push_back({Kind::kGiveUp});
    LetGo(false, actions);
    return;
  }
  generation_ = std::max(generation_, given_out_).Next();
  const CheckpointNumber point = round_point_ = points_.back();
  const bool everybody = options_.mode == RecoveryMode::kAll && !lost_.empty() && !covered_;
  if (everybody && rolled_back_ != point) {
    rolled_back_ = point;
    actions->push_back({Kind::kRollBack, 0, point});
  }
  for (uint32_t server = 0; server < options_.servers; ++server) {
    pending_.insert(server);
    if (everybody || lost_.contains(server)) {
      actions->push_back({Kind::kRestore, server, point, generation_});
    } else {
      actions->push_back({Kind::kKeep, server, CheckpointNumber(), generation_});
    }
  }
}

Recovery::Actions Recovery::RestoreDone(uint32_t server, Generation generation) {
  if (generation != generation_ || pending_.erase(server) == 0 || !pending_.empty() || failed_)
    return {};
  Actions actions;
  if (!leaving_.empty()) {
    // Every push of before is in a server's state or will be refused.
    taking_ = true;
    state_lost_ = false;
    lost_.clear();  // they have a state again, which is in the checkpoint
    actions.push_back({Kind::kTakeCheckpoint, 0, CheckpointNumber(), generation_});
    return actions;
  }
  paused_ = false;
  covered_ = false;
  lost_.clear();
  actions.push_back({Kind::kResume, 0, CheckpointNumber(), generation_});
  return actions;
}

Recovery::Actions Recovery::RestoreFailed(uint32_t server, Generation generation, Failure failure) {
  if (generation != generation_ || pending_.erase(server) == 0) return {};
  if (failure == Failure::kTryAgain) {
    failed_ = true;
    return {};
  }
  if (failure == Failure::kServerAtFault) {
    Actions actions = ServerLost(server);
    actions.push_back({Kind::kReplace, server});
    return actions;
  }
  Actions actions;
  pending_.clear();
  covered_ = false;
  // Not the newest one, if another was committed meanwhile.
  std::erase(points_, round_point_);
  rolled_back_.reset();
  BeginRound(&actions);
  return actions;
}

Recovery::Actions Recovery::Retry() {
  Actions actions;
  if (!failed_) return actions;
  pending_.clear();
  BeginRound(&actions);
  return actions;
}

Recovery::Actions Recovery::ServerLeaving(uint32_t server) {
  Actions actions;
  if (!started_ || gave_up_ || absent_.contains(server)) {
    actions.push_back({Kind::kLetGo, server});
    return actions;
  }
  leaving_.insert(server);
  // The checkpoint that is on its way serves them all; while servers are being recovered there is
  // no state that one could be taken of, and their round ends with it.
  if (paused_) return actions;
  actions = Pause();
  BeginRound(&actions);
  return actions;
}

void Recovery::LetGo(bool covered, Actions* actions) {
  const std::set<uint32_t> leaving = std::move(leaving_);
  leaving_.clear();
  for (const uint32_t server : leaving) {
    lost_.insert(server);
    absent_.insert(server);
    actions->push_back({Kind::kLetGo, server});
  }
  covered_ = covered;
}

Recovery::Actions Recovery::LeaveCheckpoint(std::optional<CheckpointNumber> checkpoint) {
  Actions actions;
  if (!taking_) return actions;
  taking_ = false;
  // A server that was lost meanwhile took nothing along if the checkpoint is complete, and if what
  // the queue believes of the servers is still what it was.
  LetGo(checkpoint.has_value() && points_.back() == *checkpoint && !state_lost_, &actions);
  BeginRound(&actions);
  return actions;
}

}  // namespace mu
