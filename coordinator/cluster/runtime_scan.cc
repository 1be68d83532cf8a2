// Looking through the files of a dataset, on the workers.
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/error_kind.h"
#include "common/base/steady_now.h"
#include "common/rpc/typed.h"
#include "coordinator/cluster/runtime.h"

namespace mu {
namespace {

constexpr absl::Duration kInstallTimeout = absl::Seconds(60);
// Reading a large compressed file for the first time takes minutes.
constexpr absl::Duration kScanTimeout = absl::Hours(1);
// Whether the job was stopped meanwhile.
constexpr absl::Duration kLook = absl::Milliseconds(100);

}  // namespace

absl::Status Runtime::ScanFiles(
    const pb::DatasetProto& dataset, const std::vector<size_t>& files,
    const std::function<void(size_t file, pb::ScanFileReply reply)>& found) {
  struct Arrived {
    size_t file;
    std::shared_ptr<WorkerLink> worker;
    absl::StatusOr<pb::ScanFileReply> reply;
  };
  struct Scan {
    Mutex mutex;
    CondVar changed;
    size_t open ABSL_GUARDED_BY(mutex) = 0;
    std::vector<Arrived> arrived ABSL_GUARDED_BY(mutex);
  };
  std::vector<size_t> missing = files;
  for (int attempt = 0; !missing.empty(); ++attempt) {
    // Whoever is there does it; a file whose worker is lost goes to another one in the next round.
    MU_RETURN_IF_ERROR(WaitForWorkers(1, absl::InfiniteDuration()));
    const auto workers = WorkersNotAside();
    if (workers.empty()) {
      loop_.Await(
          [&] {
            loop_.AssertHeld();
            return !core_.ended().ok();
          },
          SteadyNow() + kLook);
      --attempt;  // nothing was tried
      continue;
    }
    const pb::RequestContext context = Context();
    auto scan = std::make_shared<Scan>();
    std::vector<std::shared_ptr<WorkerLink>> installed;
    for (const auto& worker : workers) {
      pb::InstallDatasetRequest install;
      *install.mutable_context() = context;
      *install.mutable_dataset() = dataset;
      const auto reply = Call<pb::InstallDatasetReply>(
          *worker->channel, "/muster.Worker/InstallDataset", install, {.timeout = kInstallTimeout});
      if (reply.ok()) {
        installed.push_back(worker);
      } else if (KindOf(reply.status()) == pb::ERROR_USER) {
        return reply.status();
      } else if (CallError::Of(reply.status()).answered()) {
        MU_RETURN_IF_ERROR(CannotRead(*worker, dataset.id(), reply.status()));
      }
    }
    if (installed.empty()) {
      if (attempt >= 10)
        return absl::UnavailableError("no worker answers while the dataset's files are counted");
      continue;
    }
    {
      MutexLock lock(&scan->mutex);
      scan->open = missing.size();
    }
    for (size_t i = 0; i < missing.size(); ++i) {
      pb::ScanFileRequest request;
      *request.mutable_context() = context;
      request.set_dataset(dataset.id());
      request.set_file(static_cast<uint32_t>(missing[i]));
      CallAsync<pb::ScanFileReply>(
          *installed[i % installed.size()]->channel, "/muster.Worker/ScanFile", request,
          {.timeout = kScanTimeout},
          [scan, file = missing[i],
           worker = installed[i % installed.size()]](absl::StatusOr<pb::ScanFileReply> reply) {
            MutexLock lock(&scan->mutex);
            scan->arrived.push_back({file, worker, std::move(reply)});
            --scan->open;
            scan->changed.SignalAll();
          });
    }
    absl::Status wrong;
    missing.clear();
    for (bool open = true; open;) {
      std::vector<Arrived> arrived;
      {
        MutexLock lock(&scan->mutex);
        if (scan->open > 0 && scan->arrived.empty()) scan->changed.WaitFor(&scan->mutex, kLook);
        arrived.swap(scan->arrived);
        open = scan->open > 0;
      }
      MU_RETURN_IF_ERROR(ended());
      for (auto& [file, worker, reply] : arrived) {
        if (reply.ok()) {
          PostStep(event::FileRead{dataset.id(), static_cast<uint32_t>(file)});
          found(file, *std::move(reply));
        } else if (InputFaultOf(reply.status()).kind() != pb::InputFault::NONE) {
          wrong.Update(CannotRead(*worker, dataset.id(), reply.status()));
          missing.push_back(file);
        } else if (KindOf(reply.status()) == pb::ERROR_USER || attempt >= 10) {
          wrong.Update(reply.status());
        } else {
          missing.push_back(file);
        }
      }
    }
    MU_RETURN_IF_ERROR(wrong);
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

std::vector<std::shared_ptr<WorkerLink>> Runtime::WorkersNotAside() const {
  return loop_.Ask([this] {
    loop_.AssertHeld();
    std::vector<std::shared_ptr<WorkerLink>> workers;
    for (const auto& [id, link] : links_) {
      if (!core_.IsAside(id)) workers.push_back(link);
    }
    return workers;
  });
}

}  // namespace mu
