#include "psserver/core/round_buffer.h"

#include <utility>

#include "common/base/check.h"
#include "psserver/core/protections.h"

namespace mu {

RoundBuffer::Place RoundBuffer::PlaceOf(uint64_t round, const PushId& push, size_t most) const {
  if (round <= applied_ || round < round_)
    return MU_SERVER_BROKEN(late_contributions) ? Place::kFree : Place::kLate;
  if (applied_ != 0 && round > applied_ + 1) return Place::kEarly;
  if (round != round_) return applying_ ? Place::kEarly : Place::kFree;
  if (kept_.contains(push)) return Place::kRepeat;
  // The coordinator chooses among those that every server has acknowledged: none of them is new.
  if (applying_) return Place::kLate;
  return kept_.size() < most ? Place::kFree : Place::kFull;
}

void RoundBuffer::Keep(uint64_t round, const PushId& push, Gradients gradients) {
  if (round > round_) {
    kept_.clear();
    round_ = round;
  }
  kept_.emplace(push, std::move(gradients));
}

RoundBuffer::Turn RoundBuffer::Begin(uint64_t round, const std::vector<PushId>& set) {
  using Step = Turn::Step;
  if (round < applied_) return {.step = Step::kStale};
  if (round == applied_ && !MU_SERVER_BROKEN(round_repeats))
    return {.step = Step::kRepeat, .updates = updates_};
  if (applying_) return {.step = Step::kWait};
  applying_ = true;
  // Of a round that touches nothing here.
  if (round != round_ && !MU_SERVER_BROKEN(late_contributions)) kept_.clear();
  round_ = round;
  Turn turn;
  for (const PushId& push : set) {
    const auto kept = kept_.find(push);
    turn.chosen.push_back(kept == kept_.end() ? nullptr : kept->second);
  }
  return turn;
}

void RoundBuffer::Applied(uint32_t updates) {
  MU_CHECK(applying_);
  applying_ = false;
  if (std::exchange(reset_, false)) return Reset();
  applied_ = round_;
  updates_ = updates;
  if (!MU_SERVER_BROKEN(round_repeats)) kept_.clear();
}

void RoundBuffer::DropBelow(uint64_t function) {
  if (applying_) return;
  kept_.erase(kept_.begin(), kept_.lower_bound(PushId{function, 0, 0}));
}

void RoundBuffer::Reset() {
  if (MU_SERVER_BROKEN(kept_contributions)) return;
  kept_.clear();
  reset_ = applying_;
  if (!applying_) round_ = applied_ = 0;
}

}  // namespace mu
