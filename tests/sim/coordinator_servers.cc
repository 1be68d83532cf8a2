// What the simulated coordinator says to workers and servers, and how a new one brings the servers
// to one state. Checkpoints are in coordinator_checkpoint.cc.
#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/sim/cluster.h"
#include "tests/sim/coordinator.h"

namespace mu::sim {

void Coordinator::Do(action::Install& a) {
  const Place place = PlaceOf(pb::ROLE_WORKER, a.worker.value());
  installing_[place.incarnation] = now();
  const auto recent = std::count_if(installing_.begin(), installing_.end(), [this](const auto& i) {
    return now() - i.second < kInstallPatience;
  });
  if (recent > kMostInstalls) cluster_->truth().Fail("too many workers are sent something at once");
  const auto answered = [=, this, worker = a.worker](const absl::Status& status, const Messages&) {
    installing_.erase(place.incarnation);
    Step(event::Installed{worker, Incarnation(place.incarnation), CallError::Of(status)});
  };
  CallAll({WithContext({.kind = Kind::kInstall,
                        .to = place.slot,
                        .generation = OnWire(generation_),
                        .routing = routing_place_,
                        .function = a.part.id})},
          kTries, answered);
}

void Coordinator::Do(action::CancelOnWorkers& a) {
  cluster_->Trace(slot_, "cancels what is below function ", a.below.value());
  for (const WorkerId worker : a.workers) {
    const Place place = PlaceOf(pb::ROLE_WORKER, worker.value());
    CallAll({WithContext({.kind = Kind::kCancelBelow,
                          .to = place.slot,
                          .generation = OnWire(a.generation),
                          .function = a.below.value()})},
            kTries, [=, this](const absl::Status& status, const Messages&) {
              Step(event::WorkerCancelled{worker, Incarnation(place.incarnation),
                                          CallError::Of(status)});
            });
  }
}

Messages Coordinator::ToServers(Message request) const {
  request.epoch = epoch_;
  if (request.low_water == 0) request.low_water = core_.low_water().value();
  Messages requests(expected_servers_, request);
  for (uint32_t s = 0; s < expected_servers_; ++s)
    requests[s].to = PlaceOf(pb::ROLE_PSSERVER, s).slot;
  return requests;
}

void Coordinator::Do(action::FenceServers& a) {
  auto fenced = std::make_shared<event::Fenced>();
  fenced->attempt = a.attempt;
  auto open = std::make_shared<size_t>(a.servers.size());
  if (a.servers.empty()) return Step(*fenced);
  Messages fences = ToServers(
      {.kind = Kind::kFence, .generation = OnWire(a.generation), .low_water = a.below.value()});
  for (const uint32_t s : a.servers) {
    // What was given the servers' state last, not what has taken its place since.
    if (s < given_state_.size()) {
      fences[s].to = given_state_[s].slot;
      fences[s].to_incarnation = given_state_[s].incarnation;
    }
    CallAll({fences[s]}, kOnce, [=, this](const absl::Status& status, const Messages&) {
      if (!status.ok()) fenced->failed[s] = CallError::Of(status);
      if (--*open == 0) Step(*fenced);
    });
  }
}

void Coordinator::Do(action::InterruptServers&) {
  Interrupt([](const Calls& calls) {
    return calls.kind == Kind::kConfigure || calls.kind == Kind::kRestore ||
           calls.kind == Kind::kSave || calls.kind == Kind::kCommitRound ||
           calls.kind == Kind::kLoadView || calls.kind == Kind::kDropView;
  });
}

void Coordinator::SetState(Generation generation, std::optional<uint64_t> folder,
                           std::vector<bool> keep, Done done) {
  generation_ = generation;
  given_state_.clear();
  for (uint32_t s = 0; s < expected_servers_; ++s)
    given_state_.push_back(PlaceOf(pb::ROLE_PSSERVER, s));
  const auto configured = [=, this](const absl::Status& status, const Messages& answers) {
    if (!status.ok() || !folder.has_value()) return done(status, answers);
    Messages restore = ToServers({.kind = Kind::kRestore,
                                  .generation = OnWire(generation),
                                  .checkpoint = static_cast<uint32_t>(*folder)});
    for (size_t s = 0; s < keep.size(); ++s) restore[s].keep_state = keep[s];
    cluster_->Trace(slot_, "restores checkpoint ", *folder, " in generation ", OnWire(generation));
    CallAll(std::move(restore), kTries, done);
  };
  CallAll(ToServers({.kind = Kind::kConfigure,
                     .steps = static_cast<uint8_t>(expected_servers_),
                     .restore_follows = folder.has_value(),
                     .generation = OnWire(generation)}),
          kTries, configured);
}

uint64_t Coordinator::FoundIn(uint64_t folder) {
  Disk& disk = cluster_->disk();
  if (folder == 0 || disk.renamed == 0) return folder;
  --disk.renamed;
  uint64_t other = 0;  // initial values
  for (const auto& [its_folder, checkpoint] : disk.checkpoints) {
    if (checkpoint.committed && its_folder != folder) other = its_folder;
  }
  cluster_->Trace(slot_, "has another checkpoint in the place of ", folder, ": ", other);
  return other;
}

void Coordinator::Do(action::Restore& a) {
  const uint64_t folder = FolderOf(TaskId(), a.checkpoint);
  uint64_t found = folder;
  if (std::find(a.keep.begin(), a.keep.end(), false) != a.keep.end()) {
    const absl::Status read = ReadManifest(folder);
    if (!read.ok()) return Step(event::Restored{a.generation, CallError::Of(read)});
    found = FoundIn(folder);
  }
  SetState(
      a.generation, found, a.keep, [=, this](const absl::Status& status, const Messages& answers) {
        if (!status.ok() && !absl::IsCancelled(status)) Saw("round fails");
        event::Restored restored = {.generation = a.generation, .error = CallError::Of(status)};
        if (found != folder) restored.renamed = absl::StrCat(folder);
        for (uint32_t s = 0; s < expected_servers_; ++s) {
          restored.updates.push_back(answers[s].updates);
          if (!status.ok() || a.keep[s] || found != folder) continue;
          cluster_->truth().Restored(epoch_, OnWire(a.generation),
                                     cluster_->PartitionsOf(answers[s]));
        }
        Step(std::move(restored));
      });
}

void Coordinator::Do(action::Configure& a) {
  SetState(a.generation, a.reset ? std::optional<uint64_t>(0) : std::nullopt, {},
           [this, attempt = a.attempt](const absl::Status& status, const Messages&) {
             Step(event::Configured{attempt, CallError::Of(status)});
           });
}

uint64_t Coordinator::FolderOf(TaskId task, CheckpointNumber point) const {
  const auto folder = folders_.find(point);
  if (task != TaskId()) return task == restore_task_ ? restore_from_ : begin_from_;
  return folder == folders_.end() ? 0 : folder->second;
}

void Coordinator::Do(action::LookAtFiles& a) {
  After(cluster_->Between(0, 5 * kMillisecond), "looked at files",
        [=, this, folder = FolderOf(a.task, a.point), generation = a.generation] {
          Step(event::FilesSeen{generation, cluster_->disk().Look(folder)});
        });
}

void Coordinator::Do(action::Load& a) {
  const uint64_t folder = FolderOf(a.task, a.point);
  if (const absl::Status read = ReadManifest(folder); !read.ok())
    return Step(event::Loaded{a.attempt, CallError::Of(read)});
  cluster_->Trace(slot_, "loads checkpoint ", folder);
  const uint64_t found = FoundIn(folder);
  SetState(a.generation, found, {}, [=, this](const absl::Status& status, const Messages& answers) {
    const bool loaded_it = status.ok() && found == folder;
    if (loaded_it) folders_[a.point] = folder;
    if (loaded_it && a.task == restore_task_) restore_answers_ = answers;
    event::Loaded loaded = {.attempt = a.attempt, .error = CallError::Of(status)};
    if (found != folder) loaded.renamed = absl::StrCat(folder);
    for (const Message& answer : answers) loaded.updates.push_back(answer.updates);
    Step(std::move(loaded));
  });
}

// What becomes of the value is not simulated; its place among the functions, its repeats and its
// errors are.
void Coordinator::Do(action::Assign& a) {
  const FunctionQueue& queue = core_.queue();
  const bool joined_only = queue.rounds().on() && (was_awaited_ || queue.IsTrainingAwaited());
  if (queue.AssignmentOpen(a.place) &&
      queue.IsRepeating(joined_only ? std::min(turn_, a.place) : a.place))
    cluster_->truth().Fail("an assignment is made before what its user had joined");
  CallError error;
  if (cluster_->PerMille(100)) error = CallError::Of(absl::UnavailableError("not assigned"));
  After(cluster_->Between(kMillisecond, 20 * kMillisecond), "assigned",
        [=, this, attempt = a.attempt] {
          Step(event::Assigned{attempt, error});
        });
}

void Coordinator::Do(action::Paused&) {
  if (cluster_->scenario().recover_shard) return;
  for (uint8_t s = 0; s < expected_servers_; ++s) cluster_->truth().StateGivenUp(s);
}

void Coordinator::Do(action::UseRouting&) {
  Routing routing = {.epoch = epoch_,
                     .version = ++catalog_,
                     .generation = OnWire(generation_),
                     .servers = static_cast<uint8_t>(expected_servers_)};
  for (uint8_t s = 0; s < routing.servers; ++s) {
    const Place place = PlaceOf(pb::ROLE_PSSERVER, s);
    cluster_->truth().ServerActive(s, cluster_->IncarnationAt(place.slot), epoch_,
                                   routing.generation);
    routing.slot[s] = place.slot;
    routing.incarnation[s] = place.incarnation;
  }
  routing_ = catalog_;
  routing_place_ = cluster_->AddRouting(routing);
  std::vector<InstallPart> parts = {{InstallPart::Kind::kRouting}};
  for (uint64_t f = 1; routing_ == 1 && f <= kFunctions; ++f)
    parts.push_back({InstallPart::Kind::kFunction, f});
  Step(event::CatalogChanged{catalog_, routing_, generation_, 1, std::move(parts)});
}

}  // namespace mu::sim
