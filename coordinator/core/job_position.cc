#include "coordinator/core/job_position.h"

#include <algorithm>
#include <map>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "coordinator/core/protections.h"

namespace mu {
namespace {

absl::StatusOr<std::vector<BatchRange>> BatchesOf(
    const pb::CheckpointFunctionProto& function,
    const std::vector<std::shared_ptr<const pb::LeaseProto>>& leases) {
  std::vector<BatchRange> batches;
  for (const pb::BatchRangeProto& range : function.batches()) batches.push_back(FromProto(range));
  for (const pb::BoundBatchesProto& range : function.bound_batches()) {
    if (range.lease() >= leases.size()) {
      return absl::InvalidArgumentError(absl::StrCat("the position of function ",
                                                     function.function(), " names lease ",
                                                     range.lease(), " of ", leases.size()));
    }
    batches.push_back({leases[range.lease()], range.first_batch(), range.batches()});
  }
  return batches;
}

}  // namespace

void AddQueuePosition(const FunctionQueue::Position& position, pb::JobPositionProto* proto) {
  proto->set_next_function(position.next_id.value());
  std::map<const pb::LeaseProto*, uint32_t> leases;  // to their index in `proto`
  for (const auto& [id, function] : position.unfinished) {
    pb::CheckpointFunctionProto& out = *proto->add_functions();
    out.set_function(id.value());
    out.set_fingerprint(function.work.fingerprint.value());
    out.set_steps(function.steps);
    out.set_requested_steps(function.work.steps);
    out.set_next_step(function.next_step);
    out.set_dataset(function.work.dataset);
    out.set_step_offset(function.work.step_offset);
    out.set_bound(function.bound);
    out.set_after(function.after.value());
    for (const BatchRange& range : function.batches) {
      const auto [lease, added] =
          leases.try_emplace(range.lease.get(), static_cast<uint32_t>(proto->leases_size()));
      if (added) *proto->add_leases() = *range.lease;
      pb::BoundBatchesProto& bound = *out.add_bound_batches();
      bound.set_lease(lease->second);
      bound.set_first_batch(range.first_batch);
      bound.set_batches(range.batches);
    }
    if (function.work.args == nullptr) continue;
    for (const auto& arg : *function.work.args) *out.add_args() = arg;
  }
}

void AddJobPosition(const JobPosition& job, pb::JobPositionProto* proto) {
  AddQueuePosition(job.functions, proto);
  proto->set_steps(job.steps);
  proto->set_samples(job.samples);
  proto->set_scheduled_steps(job.taken_steps);
  proto->set_round(job.functions.round);
  for (const uint64_t acknowledged : job.acknowledged) proto->add_acknowledged(acknowledged);
  if (!job.own_steps.has_value()) return;
  pb::OwnStepsProto& own = *proto->mutable_own_steps();
  own.set_others(job.own_steps->others);
  for (const auto& [name, steps] : job.own_steps->by_dataset) {
    pb::DatasetStepsProto& dataset = *own.add_datasets();
    dataset.set_name(name);
    dataset.set_steps(steps);
  }
}

absl::StatusOr<FunctionQueue::Position> QueuePositionOf(const pb::JobPositionProto& proto,
                                                        uint64_t needs_version) {
  FunctionQueue::Position position;
  position.next_id = FunctionId(proto.next_function());
  std::vector<std::shared_ptr<const pb::LeaseProto>> leases;
  for (const pb::LeaseProto& lease : proto.leases())
    leases.push_back(std::make_shared<const pb::LeaseProto>(lease));
  for (const pb::CheckpointFunctionProto& in : proto.functions()) {
    if (in.function() == 0 || in.function() >= proto.next_function() ||
        in.next_step() > in.steps() || in.after() > in.function()) {
      return absl::InvalidArgumentError(
          absl::StrCat("the position of function ", in.function(), " makes no sense"));
    }
    FunctionQueue::Function& function = position.unfinished[FunctionId(in.function())];
    function.work.fingerprint = Fingerprint(in.fingerprint());
    // Manifests of earlier programs do not say whether the data ended before.
    function.work.steps = std::max(in.requested_steps(), in.steps());
    function.work.dataset = in.dataset();
    function.work.needs_version = needs_version;
    function.work.step_offset = in.step_offset();
    function.work.updates = true;
    function.work.trains = !MU_BROKEN(resumed_untrained);
    if (in.args_size() > 0) {
      function.work.args =
          std::make_shared<const std::vector<pb::TensorProto>>(in.args().begin(), in.args().end());
    }
    function.bound = in.bound();
    function.after = FunctionId(in.after());
    function.steps = in.steps();
    function.next_step = in.next_step();
    MU_ASSIGN_OR_RETURN(function.batches, BatchesOf(in, leases));
  }
  return position;
}

absl::StatusOr<ResumePoint> ResumePointOf(const pb::JobPositionProto& proto,
                                          uint64_t needs_version) {
  ResumePoint point;
  point.resumes = true;
  JobPosition& job = point.job;
  MU_ASSIGN_OR_RETURN(job.functions, QueuePositionOf(proto, needs_version));
  job.steps = proto.steps();
  job.samples = proto.samples();
  job.acknowledged.assign(proto.acknowledged().begin(), proto.acknowledged().end());
  if (proto.has_own_steps()) {
    OwnSteps& own = job.own_steps.emplace();
    own.others = proto.own_steps().others();
    for (const pb::DatasetStepsProto& dataset : proto.own_steps().datasets())
      own.by_dataset[dataset.name()] = dataset.steps();
  }
  job.taken_steps = std::max(proto.scheduled_steps(), proto.steps());
  for (const auto& [id, function] : job.functions.unfinished) {
    if (!function.bound) continue;
    job.taken_steps = std::max(job.taken_steps, function.work.step_offset + function.steps);
  }
  job.functions.round = proto.round() > 0 ? proto.round() : job.taken_steps + 1;
  return point;
}

uint64_t ScheduledSteps(const pb::CheckpointProto& manifest) {
  // Manifests of earlier programs do not say.
  const uint64_t scheduled = manifest.position().scheduled_steps();
  return scheduled > 0 ? scheduled : manifest.steps();
}

ResumePoint ValuesOf(const pb::CheckpointProto& manifest) {
  const pb::JobPositionProto& position = manifest.position();
  ResumePoint point;
  point.job.functions.next_id = FunctionId(std::max<uint64_t>(1, position.next_function()));
  point.job.taken_steps = ScheduledSteps(manifest);
  point.job.functions.round = position.round() > 0 ? position.round() : point.job.taken_steps + 1;
  return point;
}

ResumePoint BeginningOf(const pb::CheckpointProto& manifest, bool slots) {
  ResumePoint point = ValuesOf(slots ? manifest : pb::CheckpointProto());
  point.begins = true;
  point.job.functions.next_id = FunctionId(1);  // its memory of pushes is not taken
  return point;
}

}  // namespace mu
