// Workers that cannot read the data, or cannot install what they are sent.
#include <utility>

#include "absl/strings/str_cat.h"
#include "coordinator/core/core.h"

namespace mu {

void Core::On(event::CannotRead& e) {
  const Worker* const worker = Find(e.worker, e.incarnation);
  if (worker == nullptr) return;
  absl::Status error = WorkerCannot(*worker, e.dataset, e.error);
  if (!error.ok()) Do(action::InputWrong{std::move(error)});
}

absl::Status Core::WorkerCannot(const Worker& worker, uint64_t dataset, const CallError& why) {
  using Verdict = InputComplaints::Verdict;
  const WorkerId id(worker.member.index);
  pb::ErrorDetail detail = DetailOf(why.status).value_or(pb::ErrorDetail());
  const Verdict verdict = why.input.kind() == pb::InputFault::MISSING
                              ? inputs_.Missing(id, dataset, why.input.file())
                              : inputs_.Broken(id);
  switch (verdict) {
    case Verdict::kTryAgain:
    case Verdict::kTryElsewhere:
      Note(Level::kInfo, "worker ", id.value(), ": ", why.status.ToString(),
           "; this is tried again");
      return absl::OkStatus();
    case Verdict::kSetAside:
      SetAside(worker, why.status);
      return absl::OkStatus();
    case Verdict::kInputWrong:
      for (const WorkerId pardoned : inputs_.Pardoned()) queue_.SetAside(pardoned, false);
      install_ = true;
      detail.set_kind(pb::ERROR_USER);
      return WithDetail(why.status, detail);
    case Verdict::kNoneLeft:
      break;
  }
  SetAside(worker, why.status);
  detail.set_kind(pb::ERROR_MACHINE);
  detail.set_role(pb::ROLE_WORKER);
  detail.set_index(id.value());
  const absl::Status error =
      WithDetail(absl::Status(why.status.code(),
                              absl::StrCat("no worker is left: all ", workers_.size(),
                                           " were set aside; the last was ",
                                           Describe(worker.member), ": ", why.status.message())),
                 detail);
  End(error);
  return error;
}

void Core::SetAside(const Worker& worker, const absl::Status& why) {
  const Member& member = worker.member;
  const WorkerId id(member.index);
  const std::string message(why.message());
  Note(Level::kWarning, "worker ", id.value(), " (pid ", member.pid, ", ", member.address, " on ",
       member.host, ") is set aside, no function runs there any more: ", message);
  MemberFailure failure = {{}, pb::ROLE_WORKER, id.value(), "set_aside", Seconds(), message};
  failure.pid = member.pid;
  failures_.WorkerLost(std::move(failure), {});
  queue_.SetAside(id, true);
  for (auto& [dataset, leases] : leases_) leases.Forget(id);
  dispatch_ = true;
}

void Core::NoteRead(Worker* worker, const FunctionQueue::Function& function, uint32_t step) {
  for (const BatchRange& range : function.batches) {
    if (step >= range.batches) {
      step -= range.batches;
      continue;
    }
    if (range.lease == worker->last_read) return;
    worker->last_read = range.lease;
    for (const pb::BlockProto& block : range.lease->blocks())
      inputs_.Read(function.work.dataset, block.file());
    return;
  }
}

}  // namespace mu
