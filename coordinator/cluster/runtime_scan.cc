// Looking through the files of a dataset, on the workers that the core names.
#include <memory>
#include <utility>

#include "common/base/error_kind.h"
#include "common/rpc/typed.h"
#include "coordinator/cluster/file_layout_check.h"
#include "coordinator/cluster/runtime.h"
#include "coordinator/core/deadlines.h"

namespace mu {

absl::Status Runtime::ScanFiles(
    const pb::DatasetProto& dataset, const std::vector<size_t>& files,
    const std::function<void(size_t file, pb::ScanFileReply reply)>& found) {
  auto scan = std::make_shared<Scan>();
  scan->dataset = std::make_shared<const pb::DatasetProto>(dataset);
  loop_.Ask([&] {
    loop_.AssertHeld();
    last_scan_ = last_scan_.Next();
    scans_[last_scan_] = scan;
    Step(event::ScanWanted{last_scan_, scan->dataset, {files.begin(), files.end()}});
  });
  for (bool done = false; !done;) {
    std::vector<std::pair<uint32_t, pb::ScanFileReply>> arrived;
    loop_.Await([&] {
      loop_.AssertHeld();
      arrived.swap(scan->found);
      done = scan->done;
      return done || !arrived.empty();
    });
    for (auto& [file, reply] : arrived) found(file, std::move(reply));
  }
  return scan->status;
}

template <typename Reply, typename Request>
void Runtime::CallForScan(const action::ScanFiles& part, const std::shared_ptr<WorkerLink>& link,
                          const char* method, const Request& request, absl::Duration timeout,
                          std::function<void(absl::StatusOr<Reply>&)> done) {
  const std::shared_ptr<Scan>& scan = scans_.at(part.scan);
  const uint64_t number = ++scan->last_call;
  const auto ended = [this, scan, number, done = std::move(done),
                      job = expected_.Expect()](absl::StatusOr<Reply> reply) {
    job->Post([this, scan, number, done,
               reply = std::make_shared<absl::StatusOr<Reply>>(std::move(reply))] {
      loop_.AssertHeld();
      scan->calls.erase(number);
      done(*reply);
    });
  };
  scan->calls[number] =
      CallAsync<Reply>(*link->channel, method, request, {.timeout = timeout}, ended);
}

void Runtime::Do(action::ScanFiles& a) {
  const std::shared_ptr<WorkerLink> link = links_.at(a.worker);
  // A dataset of many files is large, and a worker is given the next file with each answer: it is
  // sent the dataset once.
  if (scans_.at(a.scan)->installed.contains(link)) {
    for (const uint32_t file : a.files) ScanFile(a, link, file);
    return;
  }
  pb::InstallDatasetRequest request;
  *request.mutable_context() = ContextNow();
  *request.mutable_dataset() = *scans_.at(a.scan)->dataset;
  CallForScan<pb::InstallDatasetReply>(
      a, link, "/muster.Worker/InstallDataset", request, options_.timeout,
      [this, a, link](absl::StatusOr<pb::InstallDatasetReply>& reply) {
        loop_.AssertHeld();
        const auto it = scans_.find(a.scan);
        if (it == scans_.end()) return;
        if (!reply.ok()) {
          return Step(event::Scanned{a.scan, a.worker, link->member.incarnation, a.files,
                                     /*installed=*/false, CallError::Of(reply.status())});
        }
        it->second->installed.insert(link);
        for (const uint32_t file : a.files) ScanFile(a, link, file);
      });
}

void Runtime::ScanFile(const action::ScanFiles& part, const std::shared_ptr<WorkerLink>& link,
                       uint32_t file) {
  pb::ScanFileRequest request;
  *request.mutable_context() = ContextNow();
  request.set_dataset(scans_.at(part.scan)->dataset->id());
  request.set_file(file);
  CallForScan<pb::ScanFileReply>(
      part, link, "/muster.Worker/ScanFile", request, deadlines::kScan,
      [this, scan = part.scan, link, file](absl::StatusOr<pb::ScanFileReply>& reply) {
        loop_.AssertHeld();
        const auto it = scans_.find(scan);
        if (it == scans_.end()) return;
        const pb::DatasetProto& dataset = *it->second->dataset;
        if (reply.ok()) {
          if (const absl::Status sane = CheckFileLayout(dataset, reply->layout()); !sane.ok()) {
            reply = WithKind(Annotate(sane, dataset.files(static_cast<int>(file))),
                             pb::ERROR_MACHINE, pb::ROLE_WORKER);
          }
        }
        CallError error = CallError::Of(reply.status());
        // The file is asked for again, of this worker or another one.
        if (error.kind == pb::ERROR_NOT_INSTALLED) it->second->installed.erase(link);
        scanned_ = reply.ok() ? &*reply : nullptr;
        Step(event::Scanned{.scan = scan,
                            .worker = link->id,
                            .incarnation = link->member.incarnation,
                            .files = {file},
                            .error = std::move(error)});
        scanned_ = nullptr;
      });
}

void Runtime::Do(action::FileCounts& a) {
  scans_.at(a.scan)->found.emplace_back(a.file, std::move(*scanned_));
}

void Runtime::Do(action::ScanDone& a) {
  const std::shared_ptr<Scan> scan = scans_.extract(a.scan).mapped();
  scan->done = true;
  scan->status = std::move(a.status);
  for (const auto& [number, call] : scan->calls) call->Cancel();
}

}  // namespace mu
