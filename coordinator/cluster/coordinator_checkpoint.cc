// Checkpoints as a program takes them, and what it goes on from.
#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/env/file.h"
#include "common/obs/log.h"
#include "coordinator/cluster/checkpoint_directory.h"
#include "coordinator/cluster/checkpoint_link.h"
#include "coordinator/cluster/checkpoint_manifest.h"
#include "coordinator/cluster/coordinator_impl.h"
#include "coordinator/core/data_contents.h"
#include "coordinator/core/job_position.h"
#include "coordinator/core/resume_search.h"

namespace mu {

void Coordinator::EnableRecovery(const std::string& directory, RecoveryMode mode) {
  impl_->checkpoints.Enable(directory);
  impl_->runtime->EnableRecovery(mode);
}

bool Coordinator::UsePartitionCountsOf(const std::string& directory) {
  return impl_->checkpoints.UsePartitionCountsOf(directory);
}

bool Coordinator::UsePartitionCountsOf(const std::string& directory, const WarmStartSpec& spec) {
  return impl_->checkpoints.UsePartitionCountsOf(
      directory, [&spec](const std::string& table) { return NamesInModel(spec, table); });
}

bool Coordinator::UseInitializersOf(const std::string& directory) {
  return impl_->checkpoints.UseInitializersOf(directory);
}

void Coordinator::StartFresh() { impl_->checkpoints.StartFresh(); }

bool Coordinator::begun() const { return impl_->begun(); }

absl::Status Coordinator::Impl::Save(const std::shared_ptr<TaskState>& state, ServerTask what) {
  MU_RETURN_IF_ERROR(runtime->EnsureServers());
  ScopedSpan span(runtime->options().telemetry, "checkpoint");
  what.kind = ServerTask::Kind::kSave;
  return runtime->Run(std::move(what), state);
}

absl::StatusOr<pb::CheckpointProto> Coordinator::Save(const std::string& directory,
                                                      pb::CheckpointProto manifest,
                                                      SaveOptions options) {
  MU_ASSIGN_OR_RETURN(const std::string absolute, AbsolutePath(directory));
  auto state = std::make_shared<TaskState>();
  // Servers would write over its files before the new manifest: a server lost meanwhile would cost
  // both.
  state->claim = [absolute, options]() -> absl::StatusOr<std::string> {
    if (options.replace) return ClaimLinkedCheckpoint(absolute);
    if (!FileExists(JoinPath(absolute, kManifestName))) return absolute;
    return absl::AlreadyExistsError(
        absl::StrCat(absolute,
                     " holds a checkpoint; name another directory, remove it, or let "
                     "Save replace it (SaveOptions::replace)"));
  };
  state->clean = [options](const std::string& folder) {
    // It is no checkpoint.
    RemoveTree(options.replace ? folder : JoinPath(folder, kManifestName)).IgnoreError();
  };
  state->manifest = std::move(manifest);
  MU_RETURN_IF_ERROR(impl_->Save(state, {.after_repeats = true}));
  if (options.replace)
    MU_RETURN_IF_ERROR(LinkCheckpoint(absolute, state->folder, &impl_->checkpoints));
  return std::move(state->manifest);
}

// Its position says what is not whole.
absl::StatusOr<pb::CheckpointProto> Coordinator::Impl::SaveNumbered(pb::CheckpointProto manifest,
                                                                    ServerTask what,
                                                                    std::string* used) {
  const std::shared_ptr<TaskState> state = runtime->NumberedCheckpoint();
  state->manifest = std::move(manifest);
  const absl::Status saved = Save(state, std::move(what));
  if (used != nullptr) *used = state->folder;
  MU_RETURN_IF_ERROR(saved);
  return std::move(state->manifest);
}

absl::StatusOr<pb::CheckpointProto> Coordinator::Checkpoint(pb::CheckpointProto manifest,
                                                            std::string* used) {
  return impl_->SaveNumbered(std::move(manifest), {}, used);
}

absl::StatusOr<pb::CheckpointProto> Coordinator::CheckpointBeside(pb::CheckpointProto manifest,
                                                                  std::string* used) {
  return impl_->SaveNumbered(std::move(manifest), {.background = true}, used);
}

absl::Status Coordinator::PruneCheckpoints(int keep) {
  return impl_->checkpoints.Prune(keep, [this] { return impl_->runtime->IsSuperseded(); });
}

absl::Status Coordinator::Impl::Load(const std::shared_ptr<TaskState>& state) {
  const bool warm = state->take != nullptr;
  if (!warm) MU_RETURN_IF_ERROR(CheckFits(state->manifest, runtime->Created()));
  if (state->point == nullptr) {
    state->point = std::make_shared<const ResumePoint>(
        warm ? BeginningOf(state->manifest, state->take->slots()) : ValuesOf(state->manifest));
  }
  return runtime->Run({.kind = ServerTask::Kind::kLoad,
                       .loaded = CheckpointNumber(warm ? 0 : state->manifest.number()),
                       .point = state->point},
                      state);
}

absl::StatusOr<pb::CheckpointProto> Coordinator::Restore(const std::string& directory) {
  auto state = std::make_shared<TaskState>();
  MU_ASSIGN_OR_RETURN(const std::string absolute, AbsolutePath(directory));
  MU_RETURN_IF_ERROR(impl_->runtime->EnsureServers());
  MU_RETURN_IF_ERROR(impl_->runtime->WaitForRepeats());
  // Servers may go back to it when the link names another.
  MU_ASSIGN_OR_RETURN(state->manifest,
                      ReadLinkedManifest(absolute, &impl_->checkpoints, &state->held));
  state->folder = state->held->folder();
  MU_RETURN_IF_ERROR(impl_->Load(state));
  return std::move(state->manifest);
}

absl::StatusOr<pb::TakenValuesProto> Coordinator::WarmStart(const std::string& directory,
                                                            const WarmStartSpec& spec) {
  auto state = std::make_shared<TaskState>();
  MU_ASSIGN_OR_RETURN(const std::string absolute, AbsolutePath(directory));
  // Servers may go back to it when the link names another.
  MU_ASSIGN_OR_RETURN(state->manifest,
                      ReadLinkedManifest(absolute, &impl_->checkpoints, &state->held));
  state->folder = state->held->folder();
  std::vector<WarmStartProblem> problems;
  pb::TakenValuesProto take =
      PlanWarmStart(spec, state->manifest, impl_->runtime->Created(), &problems);
  MU_RETURN_IF_ERROR(ToStatus(problems));
  if (take.slots()) {
    // What a schedule counts: updates, and a round is one of them.
    const JobPosition job = BeginningOf(state->manifest, /*slots=*/true).job;
    take.set_steps(impl_->runtime->rounds().on() ? job.functions.round - 1 : job.taken_steps);
  }
  state->take = std::make_shared<const pb::TakenValuesProto>(std::move(take));
  MU_RETURN_IF_ERROR(impl_->runtime->EnsureServers());
  MU_RETURN_IF_ERROR(impl_->Load(state));
  return *state->take;
}

absl::StatusOr<std::vector<ResumePoint::Data>> Coordinator::Impl::PrepareDataOf(
    const pb::CheckpointProto& manifest) {
  const pb::JobPositionProto& place = manifest.position();
  std::vector<ResumePoint::Data> stopped_in;
  {
    MutexLock lock(&data_mutex);
    for (const pb::DatasetPositionProto& position : place.datasets()) {
      const auto known = std::find_if(datasets.begin(), datasets.end(), [&](const auto& dataset) {
        return dataset.second.name() == position.name();
      });
      if (known == datasets.end()) {
        return absl::InvalidArgumentError(absl::StrCat("the checkpoint stopped in the dataset '",
                                                       position.name(),
                                                       "', which this program has not created"));
      }
      stopped_in.push_back({known->first, position, nullptr});
    }
  }
  for (ResumePoint::Data& data : stopped_in) {
    MU_ASSIGN_OR_RETURN(const DataLayout layout, PrepareDataset(data.dataset));
    {
      // The core compares again, but does not know the files' names.
      MutexLock lock(&data_mutex);
      MU_RETURN_IF_ERROR(CheckSameData(layout, data.position, datasets.at(data.dataset)));
    }
    MU_ASSIGN_OR_RETURN(data.plan, runtime->MakePlan(layout, data.position.epoch()));
  }
  for (const auto& function : place.functions()) {
    // One that every worker reads by itself has no position.
    if (function.dataset() != 0) MU_RETURN_IF_ERROR(PrepareDataset(function.dataset()).status());
  }
  return stopped_in;
}

absl::Status Coordinator::Impl::CheckJob(const TaskState& state) {
  const uint64_t saved = state.manifest.job_fingerprint(), own = options.runtime.job_fingerprint;
  if (saved == 0 || own == 0 || saved == own) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrFormat("%s is of another job: its fingerprint is %016x, this job's %016x; choose "
                      "another job_dir",
                      state.folder, saved, own));
}

absl::Status Coordinator::Impl::PrepareResume(TaskState* state) {
  MU_RETURN_IF_ERROR(CheckFits(state->manifest, runtime->Created()));
  MU_RETURN_IF_ERROR(CheckJob(*state));
  MU_ASSIGN_OR_RETURN(auto data, PrepareDataOf(state->manifest));
  return runtime->PrepareResume(state, std::move(data));
}

absl::StatusOr<RestoredJob> Coordinator::Restore(CoordinatorEpoch since) {
  MU_ASSIGN_OR_RETURN(const std::string parent, impl_->checkpoints.Parent());
  using Next = ResumeSearch::Next;
  ResumeSearch search(parent, since);
  std::shared_ptr<TaskState> state;
  for (Next next = search.Listed(ListCheckpoints(parent));;) {
    switch (next) {
      case Next::kRead: {
        MU_RETURN_IF_ERROR(impl_->runtime->EnsureServers());
        state = std::make_shared<TaskState>();
        state->folder = search.folder();
        const auto manifest = ReadManifest(state->folder);
        if (manifest.ok()) state->manifest = *manifest;
        next = search.Read(manifest.status(), CoordinatorEpoch(state->manifest.epoch()));
        break;
      }
      case Next::kLoad: {
        const absl::Status fits = impl_->PrepareResume(state.get());
        next = fits.ok() ? search.Loaded(impl_->Load(state)) : search.Unfit(fits);
        break;
      }
      case Next::kSkip:
        MU_LOG(ERROR, "{} cannot be used: {}; trying an older checkpoint", search.folder(),
               search.error());
        impl_->checkpoints.NoteBad(search.folder());
        next = search.Older();
        break;
      case Next::kResume: {
        RestoredJob job = {.directory = state->folder,
                           .manifest = state->manifest,
                           .user_state = state->manifest.user_state(),
                           .unfinished = {}};
        for (const auto& [id, function] : state->unfinished)
          job.unfinished.push_back(RemoteValue(id, function));
        MU_LOG(INFO, "the job continues from {}: {} steps, {} calls unfinished", job.directory,
               job.manifest.position().steps(), job.unfinished.size());
        return job;
      }
      case Next::kFresh:
        StartFresh();
        return search.error();
      case Next::kFail:
        return search.error();
    }
  }
}

}  // namespace mu
