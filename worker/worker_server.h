// A worker, free of its transport: it answers the methods of muster.Worker. See docs/design.md.
//
//   WorkerServer worker(options, transport);
//   MethodTable methods;
//   worker.AddMethods(&methods);
//   auto rpc = transport->Listen(address, std::move(methods));  // shut down before the worker is
//                                                               // destroyed
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/obs/telemetry.h"
#include "common/rpc/resumable_end.h"
#include "common/rpc/transport.h"
#include "proto/worker.pb.h"
#include "worker/core_shell.h"
#include "worker/dataset_store.h"
#include "worker/feed_server.h"
#include "worker/step_runner.h"

namespace mu {

struct WorkerOptions {
  uint32_t index = 0;
  bool registers = false;    // requests wait for Registered(); else the first one decides to which
                             // job the worker belongs
  uint64_t incarnation = 0;  // of this process, as it registers; 0: whoever calls means this one
  std::string cache_dir;     // for unpacked copies of compressed files
  uint64_t cache_bytes = uint64_t{64} << 30;  // of them
  size_t lease_bytes = size_t{512} << 20;     // parsed leases held in memory
  size_t most_lease_bytes = 0;                // of one of them; 0: any
  // Of what a step returns; a function whose steps return more fails.
  uint64_t most_result_bytes =
      static_cast<uint64_t>(TransportOptions().max_message_bytes) - kMessageOverhead;
  int threads = 1;           // that read ahead
  double slow_down = 1;      // for tests: every step takes this many times as long
  absl::Duration step_wait;  // for benchmarks: every step waits so long
  // For benchmarks: called after each time without a run, from the thread that executes runs. May
  // be null.
  std::function<void(uint64_t from_ns, uint64_t until_ns)> on_idle;
  RetryPolicy servers = {};  // of calls to the parameter servers
  Telemetry* telemetry = &Telemetry::Process();
};

// Thread safe.
class WorkerServer {
 public:
  WorkerServer(const WorkerOptions& options, Transport* transport);
  ~WorkerServer();

  void AddMethods(MethodTable* methods);

  // The coordinator has taken this worker: its job, its epoch and the worker's index.
  absl::Status Registered(uint64_t job, uint64_t epoch, uint32_t index);

  // The running step is the last; what is left of all functions is handed back
  // (RunReply.handed_back), and so is all of new ones. What the running step waits for is given up
  // after `patience`. Returns when nothing runs, or when the process may end although a step
  // computes or reads, see CoreShell::Drain.
  void Drain(absl::Duration patience, absl::Duration most = absl::InfiniteDuration());

  // What it has. Adds to the metrics of its telemetry.
  void AddMetrics(MetricList* list) const;

  // Where the running step is; it moves also while files are unpacked.
  StepWatch::Place place() const;

 private:
  using Call = std::shared_ptr<ServerCall>;

  absl::StatusOr<pb::ConfigureWorkerReply> Configure(const pb::ConfigureWorkerRequest& request);
  absl::StatusOr<pb::InstallDatasetReply> InstallDataset(const pb::InstallDatasetRequest& request);
  absl::StatusOr<pb::ScanFileReply> ScanFile(const pb::ScanFileRequest& request);
  absl::StatusOr<pb::InstallFunctionReply> InstallFunction(
      const pb::InstallFunctionRequest& request);
  void StartRun(Call call, pb::RunRequest request, RunLeases leases);
  // Prefetches what the run reads and what will probably come next.
  void ReadAhead(const FunctionRun& run);
  void CancelRuns(Call call, const Buffer& bytes);

  Telemetry* const telemetry_;
  DatasetStore datasets_;
  const std::shared_ptr<CoreShell> shell_;  // shared with calls that may be cancelled late
  StepRunner runner_;
  FeedServer feeds_;
  std::thread thread_;  // executes runs
};

}  // namespace mu
