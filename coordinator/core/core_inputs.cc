// What workers find in the data: scans of files for callers, and workers that cannot read the data,
// or cannot install what they are sent.
#include <utility>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_text.h"
#include "coordinator/core/core.h"

namespace mu {
namespace {

// Of a file that no worker sees.
absl::Status WithRemedy(const absl::Status& status) {
  absl::Status all(status.code(), absl::StrCat(status.message(), "; check the path"));
  status.ForEachPayload(
      [&all](absl::string_view url, const absl::Cord& payload) { all.SetPayload(url, payload); });
  return all;
}

}  // namespace

void Core::On(event::ScanWanted& e) {
  if (const absl::Status over = ended(); !over.ok()) return Do(action::ScanDone{e.scan, over});
  if (e.files.empty()) return Do(action::ScanDone{e.scan, absl::OkStatus()});
  scans_.try_emplace(e.scan, Scan{std::move(e.dataset), FileScan(e.files, options_.scan_patience)});
  scan_ = true;
}

void Core::On(event::Scanned& e) {
  NoteEpoch(e.error.epoch);
  const auto it = scans_.find(e.scan);
  if (it == scans_.end()) return;
  FileScan& scan = it->second.files;
  const uint64_t dataset = it->second.dataset->id();
  scan_ = true;
  if (e.error.ok()) {
    for (const uint32_t file : e.files) {
      inputs_.Read(dataset, file);
      if (scan.Counted(file, e.worker, now_)) Do(action::FileCounts{e.scan, file});
    }
    if (scan.done()) EndScan(e.scan, absl::OkStatus());
    return;
  }
  const Worker* const worker = Find(e.worker, e.incarnation);
  if (worker == nullptr) return;  // its files are others' since it was lost
  // Whether the input or the worker is wrong does not depend on how often it is tried.
  const bool complains =
      e.error.input.kind() != pb::InputFault::NONE || (!e.installed && e.error.answered());
  absl::Status wrong;
  for (const uint32_t file : e.files) {
    if (complains) {
      scan.Returned(file, e.worker, now_);
    } else {
      wrong.Update(scan.Failed(file, e.worker, e.error, now_));
    }
  }
  if (complains) wrong = WorkerCannot(*worker, dataset, e.error);
  if (!wrong.ok()) EndScan(e.scan, wrong);
}

void Core::DriveScans() {
  if (scans_.empty()) return;
  std::vector<WorkerId> workers;
  for (const auto& [id, worker] : workers_) {
    if (!IsAside(id) && worker.leaving.empty()) workers.push_back(id);
  }
  for (auto& [id, scan] : scans_) {
    const auto name = [&scan = scan](uint32_t file) {
      return scan.dataset->files(static_cast<int>(file));
    };
    for (const FileScan::Silence& silence : scan.files.Silent(now_)) {
      Note(Level::kWarning, "worker ", silence.worker.value(), " has not finished looking through ",
           name(silence.first), " (", silence.files, " files are left) for ",
           absl::FormatDuration(absl::Floor(silence.lasts, absl::Seconds(1))),
           "; that takes minutes where a large compressed file is read for the first time, and has "
           "no end where a network disk hangs");
    }
    for (FileScan::Given& given : scan.files.Give(workers, now_)) {
      if (given.helps) {
        Note(Level::kInfo, "worker ", given.worker.value(), " looks through ",
             name(given.files.front()), " too");
      }
      Do(action::ScanFiles{id, given.worker, std::move(given.files)});
    }
  }
}

void Core::EndScan(ScanId id, const absl::Status& status) {
  if (scans_.erase(id) > 0) Do(action::ScanDone{id, status});
}

void Core::EndScans(const absl::Status& status) {
  while (!scans_.empty()) EndScan(scans_.begin()->first, status);
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
      Note(Level::kInfo, "worker ", id.value(), ": ", StatusText(why.status),
           "; this is tried again");
      return absl::OkStatus();
    case Verdict::kSetAside:
      SetAside(worker, why.status);
      return absl::OkStatus();
    case Verdict::kInputWrong:
      for (const WorkerId pardoned : inputs_.Pardoned()) queue_.SetAside(pardoned, false);
      install_ = true;
      detail.set_kind(pb::ERROR_USER);
      return WithDetail(WithRemedy(why.status), detail);
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
  installations_.Withdraw(id);
  for (auto& [scan, its] : scans_) its.files.WorkerLost(id, now_);
  scan_ = true;
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
