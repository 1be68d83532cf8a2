#include "coordinator/core/recovery.h"

#include <algorithm>
#include <utility>

namespace mu {

using Kind = RecoveryAction::Kind;

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
  if (std::exchange(restoring_, false)) BeginRound(&actions);
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
  restoring_ = failed_ = false;
  return actions;
}

Recovery::Actions Recovery::StateLost() {
  if (!started_ || gave_up_) return {};
  Actions actions = Pause();
  for (uint32_t server = 0; server < options_.servers; ++server) lost_.insert(server);
  covered_ = false;
  state_lost_ = true;
  rolled_back_.reset();
  restoring_ = false;
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
  if (!absent_.empty() || restoring_ || taking_ || gave_up_) return;
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
  restoring_ = true;
  RecoveryAction restore = {Kind::kRestore, 0, lost_.empty() ? kInitialValues : point, generation_};
  for (uint32_t server = 0; server < options_.servers; ++server)
    restore.keep.push_back(!everybody && !lost_.contains(server));
  actions->push_back(std::move(restore));
}

Recovery::Actions Recovery::RestoreDone(Generation generation) {
  if (!restoring(generation)) return {};
  restoring_ = false;
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

Recovery::Actions Recovery::RestoreFailed(Generation generation, RestoreFault fault,
                                          uint32_t server) {
  if (!restoring(generation)) return {};
  restoring_ = false;
  if (fault == RestoreFault::kTryAgain) {
    failed_ = true;
    return {};
  }
  if (fault == RestoreFault::kServer) {
    Actions actions = ServerLost(server);
    actions.push_back({Kind::kReplace, server});
    return actions;
  }
  Actions actions;
  covered_ = false;
  // Not the newest one, if another was committed meanwhile.
  std::erase(points_, round_point_);
  rolled_back_.reset();
  BeginRound(&actions);
  return actions;
}

Recovery::Actions Recovery::Retry() {
  Actions actions;
  if (failed_) BeginRound(&actions);
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
