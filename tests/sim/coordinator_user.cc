// What the simulated user does with training, and is told of it; evaluations are in
// coordinator_groups.cc.
#include <iterator>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "coordinator/core/job_position.h"
#include "tests/sim/cluster.h"
#include "tests/sim/coordinator.h"

namespace mu::sim {

bool Coordinator::EpochIsOver() const {
  const DatasetLeases* const leases = core_.leases(kDataset);
  return leases != nullptr && leases->shared() != nullptr && leases->shared()->Exhausted();
}

bool Coordinator::AllScheduled() const {
  if (core_.leases(kDataset) == nullptr) return false;
  const Scenario& scenario = cluster_->scenario();
  if (scenario.per_worker)
    return out_of_data_ || core_.queue().next_id().value() > scenario.Functions();
  return EpochIsOver() && (!scenario.starts_epochs ||
                           core_.leases(kDataset)->shared()->epoch() + 1 >= scenario.epochs);
}

bool Coordinator::Joins() const { return wants_restore_ || wants_rounds_ || wants_join_; }

void Coordinator::Feed() {
  while (!beginning_ && !Joins() && !(blocks_ && read_task_ != TaskId()) &&
         core_.MaySchedule({}).granted() && !AllScheduled() && !EpochIsOver()) {
    const Scenario& scenario = cluster_->scenario();
    if (!scenario.per_worker && scenario.most_remembered == 0 && assign_task_ == TaskId() &&
        cluster_->PerMille(20)) {
      Ask(&assign_task_,
          {.kind = ServerTask::Kind::kAssign, .assignment = std::make_shared<Assignment>()});
    }
    FunctionWork work;
    work.steps = scenario.steps;
    work.dataset = kDataset;
    work.trains = work.updates = true;
    if (cluster_->PerMille(scenario.per_mille_no_data)) {
      work.dataset = 0;
      work.trains = work.updates = cluster_->PerMille(500);
    }
    Step(event::Schedule{std::move(work)});
    nothing_more_told_ = false;
    wants_join_ = cluster_->PerMille(25);
  }
  if (!beginning_ && !ended() && !AllScheduled() && !core_.settling() && !core_.loading() &&
      core_.MaySchedule({}).wait)
    Saw("schedule waits for room");
  // The user waits: at the end, and now and then before.
  if (!beginning_ && !ended() && cluster_->scenario().replicas > 0 && !nothing_more_told_ &&
      (AllScheduled() || EpochIsOver() || Joins() || cluster_->PerMille(5))) {
    nothing_more_told_ = true;
    Step(event::NothingMore{});
  }
}

void Coordinator::Cancel() {
  if (!beginning_) Step(event::CancelEverything{});
}

void Coordinator::UserError() {
  if (!beginning_) failing_runs_ = cluster_->Between(1, 2);
}

void Coordinator::LetFail(Message* run) {
  if (failing_runs_ == 0) return;
  --failing_runs_;
  // What a worker refuses at once it says before the ends of what it has.
  run->wrong_inputs = cluster_->Between(0, 2) == 0;
  run->fails = !run->wrong_inputs;
  run->fails_at = static_cast<uint8_t>(cluster_->Between(run->first_step, run->steps - 1));
}

void Coordinator::BadFunction() {
  if (beginning_) return;
  const InstallPart bad = {InstallPart::Kind::kFunction, kFunctions + ++bad_functions_};
  Step(event::CatalogChanged{++catalog_, routing_, generation_, 1, {bad}});
}

absl::Status Coordinator::RefusalIn(const Event& event) const {
  const auto* const e = std::get_if<event::Installed>(&event);
  if (e == nullptr || e->error.kind != pb::ERROR_USER) return absl::OkStatus();
  const auto worker = core_.workers().find(e->worker);
  if (worker == core_.workers().end() || worker->second.member.incarnation != e->incarnation)
    return absl::OkStatus();
  const auto sent = core_.installations().UnderWay(e->worker);
  const bool known = !sent.has_value() || !core_.RefusalOf(Fingerprint(sent->part.id)).ok();
  return known ? absl::OkStatus() : e->error.status;
}

void Coordinator::NoteError(const absl::Status& error) {
  cluster_->truth().Failed(epoch_, error);
  const auto its = user_errors_.find(std::string(error.message()));
  if (its == user_errors_.end()) return;
  const StartRun& failed = its->second;
  const auto feed = feeds_.find(failed.worker);
  if (feed == feeds_.end() || feed->second.runs.empty()) return;
  if (const RunId first = feed->second.runs.begin()->first; first < failed.run) {
    cluster_->truth().Fail(absl::StrCat("run ", failed.run.value(), " fails, and run ",
                                        first.value(), " of its worker, which may have failed ",
                                        "before it, has not ended"));
  }
}

void Coordinator::Do(action::Cancelled& a) {
  // At the end of all nobody waits for servers: the next coordinator restores them.
  if (ended()) return;
  if (!a.error.ok()) errors_.Failed(GroupId(), a.error);
  cluster_->truth().CancelReported(epoch_);
  cancelled_ = true;
}

void Coordinator::HearError() {
  if (!cancelled_ || ended() || core_.settling()) return;
  absl::Status told;
  const auto unseen = errors_.Unseen(GroupId());
  if (unseen != nullptr && !AllScheduled() && !EpochIsOver() && !Joins()) {
    // A call is refused with it, and the user looks at what the call returns.
    const Permission may = core_.MaySchedule({}, unseen->status);
    if (may.wait) return;
    if (may.refusal != unseen->status)
      cluster_->truth().Fail("a call is not refused with the error that nobody has seen");
    told = errors_.Failed(GroupId(), may.refusal)->Report();
  } else {
    told = errors_.Tell(GroupId(), core_.closed(), core_.ended());
  }
  cancelled_ = false;
  if (user_errors_.contains(std::string(told.message()))) Saw("user's error told");
  cluster_->truth().ErrorTold(epoch_, told);
}

void Coordinator::UserRestore() {
  if (!beginning_) wants_restore_ = true;
}

void Coordinator::ActWhenQuiet() {
  if (wants_join_ && !thinks_ && !core_.queue().IsAwaited()) {
    thinks_ = true;
    After(cluster_->Between(0, 300 * kMillisecond), "next turn", [this] {
      thinks_ = wants_join_ = false;
      if (core_.queue().IsRepeating(core_.queue().next_id())) Saw("turn beside repeats");
    });
  }
  // While values are loaded the user waits for them.
  if (beginning_ || ended() || core_.loading() || !core_.quiet()) return;
  const RoundRules& rules = cluster_->rules();
  if (std::exchange(wants_rounds_, false) && rules != core_.queue().rounds()) {
    Saw("rounds change");
    cluster_->Trace(slot_, "changes its rounds to ", rules.replicas, " and ", rules.backups);
    Step(event::SetRounds{rules});
  }
  if (std::exchange(wants_restore_, false)) RestoreValues();
  if (!EpochIsOver() || AllScheduled() || core_.loading() ||
      !core_.MayStartEpoch(kDataset).granted())
    return;
  const DatasetLeases& leases = *core_.leases(kDataset);
  const uint64_t next = leases.shared()->epoch() + 1;
  Step(event::EpochStarted{kDataset, next, PlanOf(leases.data(), next)});
}

void Coordinator::Close() {
  if (core_.closed()) return;
  Step(event::Close{});
  After(cluster_->Between(0, 30 * kMillisecond), "closed", [this] { cluster_->Exit(slot_); });
}

// One of this coordinator's checkpoints: it knows the functions that have run since.
void Coordinator::RestoreValues() {
  const Disk& disk = cluster_->disk();
  if (disk.epoch != epoch_) return;  // its time is over
  std::vector<uint64_t> own;
  for (const auto& [folder, checkpoint] : disk.checkpoints) {
    const bool is_own = folder > own_since_ || folder == begin_from_;
    if (checkpoint.committed && is_own && !bad_.contains(folder)) own.push_back(folder);
  }
  if (own.empty()) return;
  restore_from_ = own[static_cast<size_t>(cluster_->Between(0, std::ssize(own) - 1))];
  if (!ReadManifest(restore_from_).ok()) return;
  cluster_->Trace(slot_, "the user restores checkpoint ", restore_from_);
  restore_checkpoint_ = disk.checkpoints.at(restore_from_);
  pb::CheckpointProto manifest;
  *manifest.mutable_position() = restore_checkpoint_->position;
  manifest.set_steps(restore_checkpoint_->position.steps());
  Ask(&restore_task_, {.kind = ServerTask::Kind::kLoad,
                       .loaded = restore_checkpoint_->number,
                       .point = std::make_shared<const ResumePoint>(ValuesOf(manifest))});
}

void Coordinator::ValuesRestored() {
  Saw("values restored");
  // What the values do not contain the user does not want, nor the rest of what they contain a part
  // of.
  const pb::JobPositionProto& position = restore_checkpoint_->position;
  std::set<uint64_t> in_part;
  for (const auto& function : position.functions()) in_part.insert(function.function());
  for (const auto& [function, records] : finished_) {
    if (function.value() >= position.next_function() || in_part.contains(function.value()))
      cluster_->truth().Cancelled(epoch_, function.value(), records);
  }
  // A newer coordinator may have given the servers another state since.
  const bool has_servers = cluster_->disk().epoch == epoch_;
  for (const Message& answer : restore_answers_) {
    cluster_->truth().ValuesRestored(epoch_, *restore_checkpoint_,
                                     has_servers ? cluster_->PartitionsOf(answer) : nullptr);
  }
}

void Coordinator::CheckDone() {
  const FunctionQueue& queue = core_.queue();
  const bool all = AllScheduled() && !Joins() && queue.unfinished() == 0 &&
                   assign_task_ == TaskId() && restore_task_ == TaskId() &&
                   read_task_ == TaskId() && EvaluationsDone();
  // Checkpoints cover everything, so that nothing is kept for a restore to an older one; then
  // heartbeats carry the low-water mark to the servers.
  if (all && queue.kept() > 0) TakeCheckpoint();
  if (!all || queue.kept() > 0) {
    done_at_ = 0;
  } else if (done_at_ == 0) {
    done_at_ = now() + 2 * kHeartbeatEvery;
  }
}

}  // namespace mu::sim
