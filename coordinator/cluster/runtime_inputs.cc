// Workers that cannot read the data, or cannot install what they are sent: what InputComplaints
// decides is carried out here.
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/error_kind.h"
#include "common/obs/log.h"
#include "coordinator/cluster/runtime.h"

namespace mu {

absl::Status Runtime::WorkerCannot(WorkerId worker, uint64_t dataset, const absl::Status& why) {
  using Verdict = InputComplaints::Verdict;
  const auto link = links_.find(worker);
  if (link == links_.end()) return absl::OkStatus();
  pb::ErrorDetail detail = DetailOf(why).value_or(pb::ErrorDetail());
  const pb::InputFault fault = InputFaultOf(why);
  const Verdict verdict = fault.kind() == pb::InputFault::MISSING
                              ? inputs_.Missing(worker, dataset, fault.file())
                              : inputs_.Broken(worker);
  switch (verdict) {
    case Verdict::kTryAgain:
    case Verdict::kTryElsewhere:
      MU_LOG(INFO, "worker {}: {}; this is tried again", worker, why);
      return absl::OkStatus();
    case Verdict::kSetAside:
      SetAside(*link->second, why);
      return absl::OkStatus();
    case Verdict::kInputWrong:
      for (const WorkerId pardoned : inputs_.Pardoned()) queue_.SetAside(pardoned, false);
      changed_.SignalAll();
      detail.set_kind(pb::ERROR_USER);
      return WithDetail(why, detail);
    case Verdict::kNoneLeft:
      break;
  }
  SetAside(*link->second, why);
  detail.set_kind(pb::ERROR_MACHINE);
  detail.set_role(pb::ROLE_WORKER);
  detail.set_index(worker.value());
  const absl::Status error = WithDetail(
      absl::Status(why.code(),
                   absl::StrCat("no worker is left: all ", links_.size(),
                                " were set aside; the last was worker ", worker.value(), " (pid ",
                                link->second->member.pid, ", ", link->second->member.address,
                                "): ", std::string(why.message()))),
      detail);
  FailLocked(error);
  return error;
}

void Runtime::SetAside(WorkerLink& link, const absl::Status& why) {
  const std::string message(why.message());
  MU_LOG(WARN, "worker {} (pid {}, {} on {}) is set aside, no function runs there any more: {}",
         link.id, link.member.pid, link.member.address, link.member.host, message);
  MemberFailure failure = {pb::ROLE_WORKER, link.id.value(), "set_aside", SecondsUp(), message};
  failure.pid = link.member.pid;
  failures_.WorkerLost(std::move(failure), {});
  queue_.SetAside(link.id, true);
  ForgetReader(link.id);
  changed_.SignalAll();
}

void Runtime::NoteRead(WorkerLink& link, const FunctionQueue::Function& function, uint32_t step) {
  for (const BatchRange& range : function.batches) {
    if (step >= range.batches) {
      step -= range.batches;
      continue;
    }
    if (range.lease == link.last_read) return;
    link.last_read = range.lease;
    for (const pb::BlockProto& block : range.lease->blocks())
      inputs_.Read(function.work.dataset, block.file());
    return;
  }
}

std::vector<std::shared_ptr<WorkerLink>> Runtime::WorkersNotAside() const {
  MutexLock lock(&mutex_);
  std::vector<std::shared_ptr<WorkerLink>> workers;
  for (const auto& [id, link] : links_) {
    if (!inputs_.IsAside(id)) workers.push_back(link);
  }
  return workers;
}

}  // namespace mu
