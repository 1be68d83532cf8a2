#include "tests/sim/truth.h"

#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "coordinator/core/rounds.h"

namespace mu::sim {
namespace {

uint64_t KeyOf(uint64_t function, uint32_t step) { return function * kMaxSteps + step; }

}  // namespace

void Truth::ResultTaken(uint32_t epoch, uint64_t function, uint32_t step) {
  if (epoch != epoch_) return;  // of a coordinator whose time is over
  for (uint32_t p = 0; p < scenario_->partitions; ++p)
    acknowledged_[p].insert(KeyOf(function, step));
}

void Truth::Bound(uint32_t epoch, uint64_t function, uint32_t steps) {
  if (epoch != epoch_) return;
  short_.erase(function);
  if (steps < scenario_->steps) short_[function] = steps;
}

void Truth::OutOfData(uint32_t epoch, uint64_t next) {
  if (epoch == epoch_) ends_at_ = next;
}

void Truth::ScheduledWithoutData(uint32_t epoch, uint64_t function, uint32_t steps) {
  if (epoch == epoch_) without_data_[function] = steps;
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
  rolled_back_ += ForgetLost(*partitions);
}

int64_t Truth::ForgetLost(const Partitions& partitions) {
  int64_t lost = 0;
  for (uint32_t p = 0; p < scenario_->partitions; ++p) {
    if (!partitions[p].held) continue;
    absl::flat_hash_set<uint64_t> now;
    for (const Effect& effect : partitions[p].effects) {
      const uint64_t key = KeyOf(effect.function, effect.step);
      if (acknowledged_[p].contains(key)) now.insert(key);
    }
    lost += static_cast<int64_t>(acknowledged_[p].size() - now.size());
    acknowledged_[p] = std::move(now);
  }
  return lost;
}

void Truth::ValuesRestored(uint32_t epoch, const Checkpoint& checkpoint,
                           const Partitions* partitions) {
  if (epoch != epoch_) return;
  any_cancelled_ = true;
  if (partitions == nullptr) return;
  ForgetLost(*partitions);
  for (uint32_t p = 0; p < scenario_->partitions; ++p) {
    const Partition& loaded = (*partitions)[p];
    for (const auto& file : checkpoint.files) {
      if (!loaded.held || file == nullptr || !file->partitions[p].held) continue;
      // Damaged since: a server that held its content already has not read it again.
      if (file->damage > 0) continue;
      if (loaded.effects != file->partitions[p].effects)
        Fail(absl::StrCat("partition ", p, " is restored, and is not what the checkpoint holds"));
    }
  }
}

void Truth::NewEpoch(uint32_t epoch, const Checkpoint* checkpoint) {
  if (epoch < epoch_) return;
  epoch_ = epoch;
  reported_below_ = 0;
  restores_ = 0;
  ++epochs_;
  rolled_back_before_ += std::exchange(rolled_back_, 0);
  for (auto& steps : acknowledged_) steps.clear();
  const uint64_t next_function = checkpoint == nullptr ? 0 : checkpoint->position.next_function();
  without_data_.erase(without_data_.lower_bound(next_function), without_data_.end());
  short_.erase(short_.lower_bound(next_function), short_.end());
  ends_at_.reset();
  if (checkpoint == nullptr) return cancelled_.clear();
  std::map<uint64_t, uint32_t> unfinished;  // to their first step without a result
  for (const auto& function : checkpoint->position.functions())
    unfinished[function.function()] = function.next_step();
  // What the checkpoint knows nothing of, or takes for unfinished, is not cancelled any more.
  std::erase_if(cancelled_, [&](const auto& cancelled) {
    return cancelled.first >= next_function || unfinished.contains(cancelled.first);
  });
  for (uint32_t p = 0; p < scenario_->partitions; ++p) {
    for (const auto& file : checkpoint->files) {
      if (file == nullptr || !file->partitions[p].held) continue;
      for (const Effect& effect : file->partitions[p].effects) {
        // What had no result when the checkpoint was begun has no result for the new coordinator
        // either.
        const auto resumes = unfinished.find(effect.function);
        if (effect.function < next_function &&
            (resumes == unfinished.end() || effect.step < resumes->second))
          acknowledged_[p].insert(KeyOf(effect.function, effect.step));
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

void Truth::Failed(uint32_t epoch, const absl::Status& error) {
  first_errors_.try_emplace(epoch, error.message());
  // Data that a worker has gone through is nobody's fault.
  const auto detail = DetailOf(error);
  if (!absl::IsOutOfRange(error) && (!detail.has_value() || detail->role() != pb::ROLE_WORKER))
    Fail(absl::StrCat("an error of a function does not name the worker: ", error.message()));
}

void Truth::CancelReported(uint32_t epoch) {
  if (epoch == epoch_ && !cancelled_.empty())
    reported_below_ = std::max(reported_below_, cancelled_.rbegin()->first + 1);
}

void Truth::ErrorTold(uint32_t epoch, const absl::Status& error) {
  const auto first = first_errors_.extract(epoch);
  if (const std::string expected = first.empty() ? "" : first.mapped();
      error.message() != expected) {
    Fail(absl::StrCat("the user is told '", error.message(), "', and the first error is '",
                      expected, "'"));
  }
}

void Truth::Acknowledged(uint8_t index, uint64_t incarnation, const Message& push, bool repeated,
                         Time now) {
  const auto fail = [&](const auto&... why) {
    Fail(absl::StrCat("server ", index, " acknowledges step ", push.step, " of function ",
                      push.function, " in generation ", push.generation, ", ", why...));
  };
  const Active& active = active_[index];
  if (push.epoch == announced_.epoch && push.generation < announced_.generation &&
      now >= announced_.at + kLease)
    fail("but generation ", announced_.generation, " began before its lease did");
  // What belongs to an older coordinator ended with it.
  if (active.epoch != push.epoch) return;
  if (!repeated && push.function < reported_below_ && cancelled_.contains(push.function) &&
      active.generation == push.generation)
    fail("which was cancelled, after its user was told");
  if (!repeated && push.pulled != push.generation)
    fail("although it has read generation ", push.pulled);
  if (active.incarnation != incarnation)
    fail("although another process has taken its place: nobody will have that update");
}

void Truth::Pulled(uint8_t index, const Message& pull, const Partitions& partitions) {
  const uint32_t most = scenario_->most_ahead.value_or(pull.place);
  // A shard that went back lacks what the others keep; a cancelled step has no place any more;
  // rounds bound their steps themselves.
  if (pull.place <= most || scenario_->recover_shard || any_cancelled_ || scenario_->replicas > 0)
    return;
  const uint32_t before = pull.place - most;  // of them, it reads the updates
  for (uint32_t p = 0; p < scenario_->partitions; ++p) {
    if (!partitions[p].held) continue;
    const auto& effects = partitions[p].effects;
    const auto applied = static_cast<uint32_t>(
        std::count_if(effects.begin(), effects.end(),
                      [&](const Effect& effect) { return effect.place < before; }));
    if (applied == before) continue;
    return Fail(absl::StrCat("server ", index, ": step ", pull.step, " of function ", pull.function,
                             ", number ", pull.place, ", starts when partition ", p, " has ",
                             applied, " of the first ", before, " steps"));
  }
}

void Truth::RoundsChange(uint32_t replicas) {
  rounds_change_ = true;
  most_replicas_ = std::max({most_replicas_, replicas, scenario_->replicas});
}

void Truth::Started(uint64_t function, uint32_t step, uint64_t round) {
  // What is lost on its way or with a process is not too late. Slow messages end calls by their
  // deadlines, and servers by theirs.
  if (round == 0 || !scenario_->Undisturbed() || scenario_->per_mille_slow > 0) return;
  std::set<uint64_t>& rounds = started_[KeyOf(function, step)];
  rounds.insert(round);
  // Of one round at most `backups` are late, and a round takes `replicas` of those it waits for.
  const uint32_t turns =
      std::max(1u, (scenario_->backups + scenario_->replicas - 1) / scenario_->replicas);
  if (rounds.size() > RoundRules::kMostLate + turns)
    Fail(absl::StrCat("step ", step, " of function ", function, " starts for round ", round,
                      " and was too late for ", rounds.size() - 1, " rounds"));
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

bool Truth::CheckRounds(uint32_t partition, const std::vector<Effect>& effects) {
  std::map<uint32_t, uint32_t> steps;  // by round
  for (const Effect& effect : effects) {
    if (effect.round == 0 && rounds_change_) continue;
    if (effect.round == 0 ||
        ++steps[effect.round] > std::max(scenario_->replicas, most_replicas_)) {
      Fail(absl::StrCat("partition ", partition, ": step ", effect.step, " of function ",
                        effect.function, " is in round ", effect.round, ", which has ",
                        steps[effect.round], " steps"));
      return false;
    }
  }
  return true;
}

void Truth::CheckState(const std::array<const Partitions*, kMaxServers>& state, uint32_t servers,
                       int64_t reported) {
  const bool per_worker = scenario_->per_worker;
  // Each step has a place among all: its record, or its number if every worker has all records.
  // Steps without a record follow.
  uint32_t places = scenario_->TotalSteps();
  std::map<uint64_t, uint32_t> first_place;  // of functions without data
  for (const auto& [function, steps] : without_data_) {
    first_place[function] = places;
    places += steps;
  }
  const auto place_of = [&](uint64_t function, uint32_t step, uint32_t record) -> uint64_t {
    const auto first = first_place.find(function);
    if (first != first_place.end()) return first->second + step;
    return per_worker ? (function - 1) * scenario_->steps + step : record;
  };
  std::vector<bool> excused(places);
  for (auto& [function, records] : cancelled_) {
    if (per_worker) records.resize(scenario_->steps);  // also those that it had not taken yet
    if (const auto it = without_data_.find(function); it != without_data_.end())
      records.resize(it->second);
    for (uint32_t i = 0; i < records.size(); ++i) excused[place_of(function, i, records[i])] = true;
  }
  const auto excuse_from = [&](uint64_t function, uint32_t step) {
    for (; step < scenario_->steps; ++step) excused[place_of(function, step, 0)] = true;
  };
  for (const auto& [function, steps] : short_) excuse_from(function, steps);
  for (uint64_t f = ends_at_.value_or(~uint64_t{0}); f <= scenario_->Functions(); ++f)
    excuse_from(f, 0);
  int64_t missing = 0;
  std::optional<std::vector<Effect>> reference;
  for (uint32_t p = 0; p < scenario_->partitions; ++p) {
    const Partition& partition = (*state[p % servers])[p];
    if (partition.counter != partition.effects.size())
      return Fail(absl::StrCat("partition ", p, ": a counter is off"));
    std::vector<Effect> effects = partition.effects;
    std::sort(effects.begin(), effects.end());
    std::vector<bool> used(places);
    std::map<uint16_t, const Effect*> numbers;  // that steps were given for their learning rates
    const Effect* last = nullptr;
    for (const Effect& effect : effects) {
      const auto fail = [&](const auto&... why) {
        Fail(absl::StrCat("partition ", p, ": step ", effect.step, " of function ", effect.function,
                          why...));
      };
      if (last != nullptr && last->function == effect.function && last->step == effect.step)
        return fail(" was applied twice");
      if ((effect.record == kNoRecord) != first_place.contains(effect.function))
        return fail(" has a record and reads none, or the other way round");
      const uint64_t place = place_of(effect.function, effect.step, effect.record);
      if (place >= places) return fail(" used a record that does not exist");
      if (used[place]) return fail(" used record ", effect.record, ", which another step had used");
      used[place] = true;
      if (const auto [other, first] = numbers.try_emplace(effect.place, &effect); !first) {
        return fail(" has number ", effect.place, ", as step ", other->second->step,
                    " of function ", other->second->function);
      }
      last = &effect;
    }
    std::vector<uint32_t> lost;
    for (uint32_t place = 0; place < places; ++place) {
      if (!used[place] && !excused[place]) lost.push_back(place);
    }
    missing += static_cast<int64_t>(lost.size());
    if (!lost.empty() && scenario_->recover_shard) continue;
    if (!lost.empty()) {
      return Fail(absl::StrCat("partition ", p, " lacks ", lost.size(), " of ", places,
                               " steps, first the one of record (or with the number) ", lost[0]));
    }
    // A round is applied by all servers or by none, whatever was cancelled.
    const bool rounds = scenario_->replicas > 0;
    if (rounds && !CheckRounds(p, effects)) return;
    if (!rounds || rounds_change_)
      std::erase_if(effects, [&](const Effect& e) { return cancelled_.contains(e.function); });
    // A step may be on some partitions since before there were rounds, and on the others with one.
    for (Effect& effect : effects) effect.round = rounds_change_ ? 0 : effect.round;
    if (reference.value_or(effects) != effects) {
      return Fail(absl::StrCat("partition ", p,
                               " has other records for the same steps than another partition"));
    }
    reference = std::move(effects);
  }
  // A restart of the coordinator may make the report say more; results that come a third time,
  // less. A run that the network repeats may bring a finished function's updates back to a shard
  // that had lost them, without anybody's word.
  const bool strays = scenario_->recover_shard && scenario_->per_mille_repeated > 0 &&
                      (epochs_ > 1 || restores_ > 1);
  // The updates of steps whose results nobody heard are held, but were never acknowledged.
  const bool comparable =
      (scenario_->recover_shard || restores_ <= 1) && !strays && !any_cancelled_ && !rounds_change_;
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
