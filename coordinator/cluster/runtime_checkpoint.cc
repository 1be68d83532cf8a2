// Checkpoints as the runtime sees them, and what a coordinator continues from.
#include "absl/strings/str_cat.h"
#include "common/base/steady_now.h"
#include "coordinator/cluster/job_position.h"
#include "coordinator/cluster/runtime.h"

namespace mu {

absl::Status Runtime::BeginCheckpoint(CheckpointNumber checkpoint, bool leaving) {
  absl::Status refused;
  loop_.Await([&] {
    loop_.AssertHeld();
    if (core_.cancelling() && EndedNow().ok()) return false;
    aborted_ = absl::OkStatus();
    Step(event::CheckpointWanted{checkpoint, leaving});
    refused = aborted_;
    return true;
  });
  return refused;
}

absl::Status Runtime::CheckpointSaved(CheckpointNumber checkpoint, const absl::Status& saved,
                                      pb::CheckpointProto* manifest) {
  return loop_.Ask([&] {
    loop_.AssertHeld();
    for (uint32_t s = 0; s < options_.servers; ++s) Step(event::Saved{checkpoint, s, saved});
    if (aborted_.ok()) AddPosition(manifest);
    return aborted_;
  });
}

void Runtime::AddPosition(pb::CheckpointProto* manifest) const {
  // What whoever takes the checkpoint says itself goes before what came with calls.
  if (manifest->user_state().empty()) manifest->set_user_state(user_state_);
  pb::JobPositionProto& position = *manifest->mutable_position();
  position.Clear();
  const Core::JobPosition job = core_.PositionAfterCuts();
  AddQueuePosition(job.functions, &position);
  for (pb::DatasetPositionProto& dataset : core_.DataPositions())
    *position.add_datasets() = std::move(dataset);
  position.set_steps(job.steps);
  position.set_samples(job.samples);
  for (const uint64_t acknowledged : job.acknowledged) position.add_acknowledged(acknowledged);
}

absl::Status Runtime::CheckpointWritten(CheckpointNumber checkpoint, const absl::Status& written) {
  return loop_.Ask([&] {
    loop_.AssertHeld();
    Step(event::ManifestWritten{checkpoint, written});
    return aborted_;
  });
}

void Runtime::Do(action::Aborted& a) { aborted_ = std::move(a.reason); }

void Runtime::SetUserState(std::string state) {
  loop_.Ask([&] {
    loop_.AssertHeld();
    user_state_ = std::move(state);
  });
}

bool Runtime::begun() const {
  return loop_.Ask([this] {
    loop_.AssertHeld();
    return core_.queue().scheduled();
  });
}

size_t Runtime::uncovered_functions() const {
  return loop_.Ask([this] {
    loop_.AssertHeld();
    return core_.queue().uncovered();
  });
}

uint64_t Runtime::UnboundSteps(uint64_t dataset) const {
  return loop_.Ask([&] {
    loop_.AssertHeld();
    return core_.queue().UnboundSteps(dataset);
  });
}

absl::Status Runtime::StateLoaded(uint64_t token, Generation generation, CheckpointNumber point,
                                  FunctionId next, const std::vector<uint64_t>& updates,
                                  const std::vector<uint64_t>& acknowledged) {
  return loop_.Ask([&]() -> absl::Status {
    loop_.AssertHeld();
    MU_RETURN_IF_ERROR(EndedNow());
    Actions actions;
    MU_RETURN_IF_ERROR(core_.StateLoaded(SteadyNow(), token, generation, point, next, updates,
                                         acknowledged, &actions));
    Execute(actions);
    loop_.LookAgain();
    return absl::OkStatus();
  });
}

absl::StatusOr<std::vector<RemoteValue>> Runtime::Resume(CheckpointNumber point,
                                                         const pb::CheckpointProto& manifest,
                                                         const std::set<uint64_t>& datasets) {
  return loop_.Ask([&] {
    loop_.AssertHeld();
    return ResumeNow(point, manifest, datasets);
  });
}

absl::StatusOr<std::vector<RemoteValue>> Runtime::ResumeNow(CheckpointNumber point,
                                                            const pb::CheckpointProto& manifest,
                                                            const std::set<uint64_t>& datasets) {
  const pb::JobPositionProto& proto = manifest.position();
  MU_RETURN_IF_ERROR(EndedNow());
  if (core_.queue().scheduled()) {
    return absl::FailedPreconditionError(
        "functions have been scheduled already; Restore() comes before them");
  }
  Core::JobPosition position = {.steps = proto.steps(), .samples = proto.samples()};
  MU_ASSIGN_OR_RETURN(position.functions, QueuePositionOf(proto, catalog_.version()));
  std::vector<RemoteValue> values;
  std::map<FunctionId, std::shared_ptr<FunctionState>> states;
  for (auto& [id, function] : position.functions.unfinished) {
    const InstalledFunction* installed = catalog_.FindFunction(function.work.fingerprint);
    if (installed == nullptr) {
      return absl::InvalidArgumentError(absl::StrCat(
          "the checkpoint stopped in a call of a function that this program has not defined, or "
          "defines in another way "
          "(fingerprint ",
          function.work.fingerprint.value(), "); define the same functions before Restore()"));
    }
    function.work.name = installed->proto.name();
    std::vector<std::string> names;
    for (const auto& value : installed->proto.returns()) names.push_back(value.name());
    states[id] =
        std::make_shared<FunctionState>(std::move(names), function.steps, function.work.dataset,
                                        /*first_step=*/function.next_step);
    values.push_back(RemoteValue(id, states[id]));
  }
  states_ = std::move(states);
  stats_.steps = proto.steps();
  stats_.samples = proto.samples();
  user_state_ = manifest.user_state();
  Actions actions;
  core_.Resume(SteadyNow(), point, position, datasets, &actions);
  Execute(actions);
  loop_.LookAgain();
  return values;
}

}  // namespace mu
