#include "tests/sim/truth.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace mu::sim {

void Truth::Begin(const Scenario* scenario) {
  scenario_ = scenario;
  problem_.clear();
  active_ = {};
  announced_ = {};
  delivered_.clear();
  cancelled_.clear();
  any_cancelled_ = false;
  reported_below_ = 0;
  for (auto& steps : acknowledged_) steps.clear();
  rolled_back_ = rolled_back_before_ = 0;
  epoch_ = epochs_ = restores_ = restored_generation_ = 0;
}

void Truth::ResultTaken(uint32_t epoch, uint64_t function, uint32_t step) {
  if (epoch != epoch_) return;  // of a coordinator whose time is over
  const size_t place = function * kMaxSteps + step;
  for (uint32_t p = 0; p < scenario_->partitions; ++p) {
    if (acknowledged_[p].size() <= place) acknowledged_[p].resize(place + 8 * kMaxSteps);
    acknowledged_[p][place] = true;
  }
}

void Truth::Cancelled(uint32_t epoch, uint64_t function, const std::vector<uint16_t>& records) {
  if (epoch != epoch_) return;
  any_cancelled_ = true;
  cancelled_[function] = records;
}

void Truth::Restored(uint32_t epoch, uint32_t generation, const Partitions* partitions) {
  if (partitions == nullptr || epoch != epoch_) return;
  restores_ += generation != restored_generation_ ? 1 : 0;
  restored_generation_ = generation;
  for (uint32_t p = 0; p < scenario_->partitions; ++p) {
    if (!(*partitions)[p].held) continue;
    std::vector<bool>& before = acknowledged_[p];
    std::vector<bool> now(before.size());
    for (const Effect& effect : (*partitions)[p].effects) {
      const size_t place = effect.function * kMaxSteps + effect.step;
      if (place < before.size() && before[place]) now[place] = true;
    }
    rolled_back_ +=
        std::count(before.begin(), before.end(), true) - std::count(now.begin(), now.end(), true);
    before = std::move(now);
  }
}

void Truth::NewEpoch(uint32_t epoch, const Checkpoint* checkpoint) {
  if (epoch < epoch_) return;
  epoch_ = epoch;
  reported_below_ = 0;
  restores_ = 0;
  ++epochs_;
  rolled_back_before_ += std::exchange(rolled_back_, 0);
  // What the checkpoint knows nothing of, or takes for unfinished, is not cancelled any more.
  std::erase_if(cancelled_, [&](const auto& cancelled) {
    const FunctionId id(cancelled.first);
    return checkpoint == nullptr || id >= checkpoint->functions.next_id ||
           checkpoint->functions.unfinished.contains(id);
  });
  for (uint32_t p = 0; p < scenario_->partitions; ++p) {
    std::vector<bool>& steps = acknowledged_[p];
    steps.clear();
    if (checkpoint == nullptr) continue;
    for (const auto& file : checkpoint->files) {
      if (file == nullptr || !file->partitions[p].held) continue;
      for (const Effect& effect : file->partitions[p].effects) {
        // What had no result when the checkpoint was begun has no result for the new coordinator
        // either.
        if (FunctionId(effect.function) >= checkpoint->functions.next_id) continue;
        const auto unfinished = checkpoint->functions.unfinished.find(FunctionId(effect.function));
        if (unfinished != checkpoint->functions.unfinished.end() &&
            effect.step >= unfinished->second.next_step)
          continue;
        const size_t place = effect.function * kMaxSteps + effect.step;
        if (steps.size() <= place) steps.resize(place + 8 * kMaxSteps);
        steps[place] = true;
      }
    }
  }
}

void Truth::Fail(const std::string& what) {
  if (problem_.empty()) problem_ = what;
}

void Truth::ServerActive(uint8_t index, uint64_t incarnation, uint32_t epoch, uint32_t generation) {
  Active& active = active_[index];
  if (std::tie(epoch, generation) < std::tie(active.epoch, active.generation)) return;
  active = {incarnation, epoch, generation};
}

void Truth::Announced(uint32_t epoch, uint32_t generation, Time now) {
  if (std::tie(epoch, generation) <= std::tie(announced_.epoch, announced_.generation)) return;
  announced_ = {now, epoch, generation};
}

void Truth::CancelReported(uint32_t epoch) {
  if (epoch == epoch_ && !cancelled_.empty())
    reported_below_ = std::max(reported_below_, cancelled_.rbegin()->first + 1);
}

void Truth::Acknowledged(uint8_t index, uint64_t incarnation, const Message& push, bool repeated,
                         Time now) {
  const Active& active = active_[index];
  if (push.epoch == announced_.epoch && push.generation < announced_.generation &&
      now >= announced_.at + kLease) {
    Fail(absl::StrCat("server ", index, " acknowledges step ", push.step, " of function ",
                      push.function, " in generation ", push.generation, ", but generation ",
                      announced_.generation, " began before its lease did"));
  }
  // What belongs to an older coordinator ended with it.
  if (active.epoch != push.epoch) return;
  if (!repeated && push.function < reported_below_ && cancelled_.contains(push.function) &&
      active.generation == push.generation) {
    Fail(absl::StrCat("server ", index, " applies step ", push.step, " of function ", push.function,
                      ", which was cancelled, after its user was told"));
  }
  if (!repeated && push.pulled != push.generation) {
    Fail(absl::StrCat("server ", index, " applies step ", push.step, " of function ", push.function,
                      " in generation ", push.generation, ", although it has read generation ",
                      push.pulled));
  }
  if (active.incarnation == incarnation) return;
  Fail(absl::StrCat("server ", index, " acknowledges step ", push.step, " of function ",
                    push.function,
                    " although another process has taken its place: nobody will have that update"));
}

void Truth::Delivered(uint32_t epoch, uint64_t function, uint32_t step) {
  uint32_t& next = delivered_[(uint64_t{epoch} << 32) | function];
  // After a restart of the coordinator a function may go on in its middle.
  if (next > step) {
    Fail(absl::StrCat("the result of step ", step, " of function ", function,
                      " is delivered twice in epoch ", epoch));
  }
  next = step + 1;
}

void Truth::CheckState(const std::array<const Partitions*, kMaxServers>& state, uint32_t servers,
                       int64_t reported) {
  const bool per_worker = scenario_->per_worker;
  // Each step has a place among all: its record, or its number if every worker has all records.
  const uint32_t places = scenario_->TotalSteps();
  const auto place_of = [&](uint64_t function, uint32_t step, uint32_t record) -> uint64_t {
    return per_worker ? (function - 1) * scenario_->steps + step : record;
  };
  int64_t missing = 0;
  bool have_reference = false;
  std::vector<bool> excused(places);
  for (auto& [function, records] : cancelled_) {
    if (per_worker) records.resize(scenario_->steps);  // also those that it had not taken yet
    for (uint32_t i = 0; i < records.size(); ++i) excused[place_of(function, i, records[i])] = true;
  }
  for (uint32_t p = 0; p < scenario_->partitions; ++p) {
    const Partitions* owner = state[p % servers];
    if (owner == nullptr) return Fail(absl::StrCat("nobody holds partition ", p));
    const Partition& partition = (*owner)[p];
    if (partition.counter != partition.effects.size())
      return Fail(absl::StrCat("partition ", p, ": a counter is off"));
    scratch_ = partition.effects;
    std::sort(scratch_.begin(), scratch_.end());
    used_.assign(places, 0);
    for (size_t i = 0; i < scratch_.size(); ++i) {
      const Effect& effect = scratch_[i];
      const std::string what =
          absl::StrCat("partition ", p, ": step ", effect.step, " of function ", effect.function);
      if (i > 0 && scratch_[i - 1].function == effect.function &&
          scratch_[i - 1].step == effect.step) {
        return Fail(absl::StrCat(what, " was applied twice"));
      }
      const uint64_t place = place_of(effect.function, effect.step, effect.record);
      if (place >= places) return Fail(absl::StrCat(what, " used a record that does not exist"));
      if (used_[place]++ > 0) {
        return Fail(
            absl::StrCat(what, " used record ", effect.record, ", which another step had used"));
      }
    }
    uint32_t lost = places, lost_steps = 0;
    for (uint32_t place = places; place-- > 0;) {
      if (used_[place] > 0 || excused[place]) continue;
      lost = place;
      ++lost_steps;
    }
    missing += lost_steps;
    if (lost_steps > 0 && !scenario_->recover_shard) {
      return Fail(absl::StrCat("partition ", p, " lacks ", lost_steps, " of ", places,
                               " steps, first the one of record (or with the number) ", lost));
    }
    std::erase_if(scratch_,
                  [&](const Effect& effect) { return cancelled_.contains(effect.function); });
    if (lost_steps == 0) {
      if (!have_reference) {
        reference_ = scratch_;
        have_reference = true;
      } else if (reference_ != scratch_) {
        return Fail(absl::StrCat("partition ", p,
                                 " has other records for the same steps than another partition"));
      }
    }
  }
  // A restart of the coordinator may make the report say more; results that come a third time,
  // less. A run that the network repeats may bring a finished function's updates back to a shard
  // that had lost them, without anybody's word.
  const bool strays = scenario_->recover_shard && scenario_->per_mille_repeated > 0 &&
                      (epochs_ > 1 || restores_ > 1);
  // The updates of steps whose results nobody heard are held, but were never acknowledged.
  const bool comparable =
      (scenario_->recover_shard || restores_ <= 1) && !strays && !any_cancelled_;
  if (comparable && (epochs_ == 1 ? reported != rolled_back_ : reported < rolled_back_)) {
    Fail(absl::StrCat(rolled_back_, " acknowledged updates were rolled back, the report says ",
                      reported));
  }
  if (missing > rolled_back_ + rolled_back_before_) {
    Fail(absl::StrCat(missing, " updates are missing, of which ",
                      rolled_back_ + rolled_back_before_, " were acknowledged and rolled back"));
  }
}

}  // namespace mu::sim
