// Looking through the files of a dataset, on the workers.
#include <memory>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "common/base/error_kind.h"
#include "common/base/mutex.h"
#include "common/base/steady_now.h"
#include "common/obs/log.h"
#include "common/rpc/typed.h"
#include "coordinator/cluster/file_layout_check.h"
#include "coordinator/cluster/runtime.h"
#include "coordinator/core/file_scan.h"

namespace mu {
namespace {

// Reading a large compressed file for the first time takes minutes.
constexpr absl::Duration kScanTimeout = absl::Hours(1);
// Whether the job was stopped meanwhile.
constexpr absl::Duration kLook = absl::Milliseconds(100);

// The calls of a round. They end with it.
class ScanRound : public std::enable_shared_from_this<ScanRound> {
 public:
  struct Arrived {
    std::shared_ptr<WorkerLink> worker;
    std::vector<size_t> files;  // one, unless all fail together
    bool installed = true;
    absl::StatusOr<pb::ScanFileReply> reply;
  };

  ScanRound(pb::RequestContext context, absl::Duration timeout)
      : context_(std::move(context)), timeout_(timeout) {}

  void Ask(const std::shared_ptr<WorkerLink>& worker, const pb::DatasetProto& dataset,
           std::vector<size_t> files) {
    pb::InstallDatasetRequest install;
    *install.mutable_context() = context_;
    *install.mutable_dataset() = dataset;
    Begin<pb::InstallDatasetReply>(
        worker, "/muster.Worker/InstallDataset", install, timeout_,
        [round = shared_from_this(), worker, id = dataset.id(),
         files = std::move(files)](const absl::StatusOr<pb::InstallDatasetReply>& reply) {
          if (!reply.ok()) return round->End({worker, files, false, reply.status()});
          for (const size_t file : files) round->AskForFile(worker, id, file);
          round->End();
        });
  }

  // What has arrived since the last call, after waiting for something; false: that was all.
  bool Next(std::vector<Arrived>* arrived) {
    MutexLock lock(&mutex_);
    if (open_ > 0 && arrived_.empty()) changed_.WaitFor(&mutex_, kLook);
    arrived->clear();
    arrived->swap(arrived_);
    return open_ > 0;
  }

  void Cancel() {
    std::vector<std::shared_ptr<ClientCall>> calls;
    {
      MutexLock lock(&mutex_);
      cancelled_ = true;
      calls.swap(calls_);
    }
    for (const auto& call : calls) call->Cancel();
  }

 private:
  void AskForFile(const std::shared_ptr<WorkerLink>& worker, uint64_t dataset, size_t file) {
    pb::ScanFileRequest request;
    *request.mutable_context() = context_;
    request.set_dataset(dataset);
    request.set_file(static_cast<uint32_t>(file));
    Begin<pb::ScanFileReply>(
        worker, "/muster.Worker/ScanFile", request, kScanTimeout,
        [round = shared_from_this(), worker, file](absl::StatusOr<pb::ScanFileReply> reply) {
          round->End({worker, {file}, true, std::move(reply)});
        });
  }

  template <typename Reply, typename Request>
  void Begin(const std::shared_ptr<WorkerLink>& worker, const char* method, const Request& request,
             absl::Duration timeout, std::function<void(absl::StatusOr<Reply>)> done) {
    {
      MutexLock lock(&mutex_);
      if (cancelled_) return;
      ++open_;
    }
    const auto call =
        CallAsync<Reply>(*worker->channel, method, request, {.timeout = timeout}, std::move(done));
    MutexLock lock(&mutex_);
    if (cancelled_) return call->Cancel();
    calls_.push_back(call);
  }

  void End(Arrived arrived) {
    {
      MutexLock lock(&mutex_);
      arrived_.push_back(std::move(arrived));
    }
    End();
  }
  void End() {
    MutexLock lock(&mutex_);
    --open_;
    changed_.SignalAll();
  }

  const pb::RequestContext context_;
  const absl::Duration timeout_;
  Mutex mutex_;
  CondVar changed_;
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  size_t open_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<Arrived> arrived_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::shared_ptr<ClientCall>> calls_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

absl::Status Runtime::ScanFiles(
    const pb::DatasetProto& dataset, const std::vector<size_t>& files,
    const std::function<void(size_t file, pb::ScanFileReply reply)>& found) {
  FileScan scan(files);
  while (!scan.done()) {
    MU_RETURN_IF_ERROR(WaitFor(pb::ROLE_WORKER, 1, absl::InfiniteDuration()));
    std::map<WorkerId, std::shared_ptr<WorkerLink>> workers;
    std::vector<WorkerId> ids;
    for (const auto& worker : Workers(/*aside=*/false)) {
      workers[worker->id] = worker;
      ids.push_back(worker->id);
    }
    const auto round = std::make_shared<ScanRound>(Context(), options_.timeout);
    const absl::Cleanup cancel = [&] { round->Cancel(); };
    if (!ids.empty()) {
      for (auto& [id, given] : scan.Begin(ids, SteadyNow()))
        round->Ask(workers.at(id), dataset, std::move(given));
    }
    absl::Status wrong;
    std::vector<ScanRound::Arrived> arrived;
    for (bool open = true; open && !scan.done();) {
      open = round->Next(&arrived);
      MU_RETURN_IF_ERROR(ended());
      for (auto& [worker, of, installed, reply] : arrived) {
        if (reply.ok()) {
          const absl::Status sane = CheckFileLayout(dataset, reply->layout());
          if (!sane.ok()) {
            reply = WithKind(Annotate(sane, dataset.files(static_cast<int>(of[0]))),
                             pb::ERROR_MACHINE, pb::ROLE_WORKER);
          }
        }
        if (reply.ok()) {
          PostStep(event::FileRead{dataset.id(), static_cast<uint32_t>(of[0])});
          if (scan.Counted(of[0], worker->id, SteadyNow())) found(of[0], *std::move(reply));
          continue;
        }
        const CallError error = CallError::Of(reply.status());
        // Whether the input or the worker is wrong is for the core to say.
        const bool complains =
            error.input.kind() != pb::InputFault::NONE || (!installed && error.answered());
        if (complains) wrong.Update(CannotRead(*worker, dataset.id(), reply.status()));
        for (const size_t file : of) {
          const absl::Status failed = scan.Failed(file, worker->id, error, SteadyNow());
          if (!complains) wrong.Update(failed);
        }
      }
      if (!open) break;
      for (const FileScan::Silence& silence : scan.Silent(SteadyNow())) {
        MU_LOG(WARN,
               "worker {} has not finished looking through {} ({} files are left) for {}; that "
               "takes minutes where a large compressed file is read for the first time, and has no "
               "end where a network disk hangs",
               silence.worker.value(), dataset.files(static_cast<int>(silence.first)),
               silence.files, absl::FormatDuration(absl::Floor(silence.lasts, absl::Seconds(1))));
      }
      for (const auto& [id, file] : scan.Help(SteadyNow())) {
        MU_LOG(INFO, "worker {} looks through {} too", id.value(),
               dataset.files(static_cast<int>(file)));
        round->Ask(workers.at(id), dataset, {file});
      }
    }
    MU_RETURN_IF_ERROR(wrong);
    const absl::Duration pause = ids.empty() ? kLook : scan.Pause();
    if (pause > absl::ZeroDuration()) {
      loop_.Await(
          [&] {
            loop_.AssertHeld();
            return !core_.ended().ok();
          },
          SteadyNow() + pause);
    }
  }
  return absl::OkStatus();
}

absl::Status Runtime::CannotRead(const WorkerLink& worker, uint64_t dataset,
                                 const absl::Status& why) {
  return loop_.Ask([&] {
    loop_.AssertHeld();
    input_wrong_ = absl::OkStatus();
    Step(event::CannotRead{worker.id, worker.member.incarnation, dataset, CallError::Of(why)});
    return input_wrong_;
  });
}

}  // namespace mu
