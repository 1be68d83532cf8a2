#include "coordinator/cluster/job_position.h"

#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"

namespace mu {

void AddQueuePosition(const FunctionQueue::Position& position, pb::JobPositionProto* proto) {
  proto->set_next_function(position.next_id.value());
  for (const auto& [id, function] : position.unfinished) {
    pb::CheckpointFunctionProto& out = *proto->add_functions();
    out.set_function(id.value());
    out.set_fingerprint(function.work.fingerprint.value());
    out.set_steps(function.steps);
    out.set_next_step(function.next_step);
    out.set_dataset(function.work.dataset);
    out.set_step_offset(function.work.step_offset);
    out.set_bound(function.bound);
    for (const auto& range : function.batches) *out.add_batches() = ToProto(range);
    if (function.work.args == nullptr) continue;
    for (const auto& arg : *function.work.args) *out.add_args() = arg;
  }
}

absl::StatusOr<FunctionQueue::Position> QueuePositionOf(const pb::JobPositionProto& proto,
                                                        uint64_t needs_version) {
  FunctionQueue::Position position;
  position.next_id = FunctionId(proto.next_function());
  for (const pb::CheckpointFunctionProto& in : proto.functions()) {
    if (in.function() == 0 || in.function() >= proto.next_function() ||
        in.next_step() > in.steps()) {
      return absl::InvalidArgumentError(
          absl::StrCat("the position of function ", in.function(), " makes no sense"));
    }
    FunctionQueue::Function& function = position.unfinished[FunctionId(in.function())];
    function.work.fingerprint = Fingerprint(in.fingerprint());
    function.work.steps = in.steps();
    function.work.dataset = in.dataset();
    function.work.needs_version = needs_version;
    function.work.step_offset = in.step_offset();
    function.work.updates = true;
    if (in.args_size() > 0) {
      function.work.args =
          std::make_shared<const std::vector<pb::TensorProto>>(in.args().begin(), in.args().end());
    }
    function.bound = in.bound();
    function.steps = in.steps();
    function.next_step = in.next_step();
    for (const auto& range : in.batches()) function.batches.push_back(FromProto(range));
  }
  return position;
}

}  // namespace mu
