// Requests to a worker, one after the other, through its handlers, with a parameter server that it
// reaches and files that its data sets may name.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/graph/fingerprint.h"
#include "common/graph/verifier.h"
#include "common/obs/log.h"
#include "psserver/server.h"
#include "tests/fuzz/calls.h"
#include "tests/fuzz/graph_limits.h"
#include "tests/fuzz/scratch_directory.h"
#include "tests/fuzz/small_model.h"
#include "tests/fuzz/structured.h"
#include "worker/worker_server.h"

namespace mu {
namespace {

constexpr int kMostCalls = 16;
constexpr int kMostBlocks = 16;
constexpr uint32_t kMostSteps = 4;
constexpr uint32_t kMostModulo = 1 << 12;
constexpr int kMostRecords = 64;

class FuzzedWorker {
 public:
  explicit FuzzedWorker(const std::string& directory)
      : directory_(directory),
        transport_(NewMemoryTransport()),
        server_({.telemetry = &telemetry_}),
        worker_(OptionsIn(directory, &telemetry_), transport_.get()) {
    MethodTable methods;
    server_.RegisterMethods(&methods);
    listening_ = *transport_->Listen("memory:0", std::move(methods));
    MU_CHECK(listening_->address() == "memory:1");  // as the small model has it
    worker_.AddMethods(&methods_);
  }
  ~FuzzedWorker() {
    if (feed_ == nullptr) return;
    worker_.Drain(absl::Milliseconds(100));
    feed_->Finish(absl::OkStatus(), {});
  }

  void Configure() {
    pb::ConfigurePsRequest request;
    *request.mutable_context() = fuzzing::SmallContext();
    *request.mutable_routing() = fuzzing::SmallModel();
    MU_CHECK(server_.Configure(request).ok());
    pb::ConfigureWorkerRequest configure;
    *configure.mutable_context() = request.context();
    *configure.mutable_routing() = request.routing();
    Call("Configure", configure);
  }

  void Make(const fuzz::WorkerCall& call) {
    switch (call.call_case()) {
      case fuzz::WorkerCall::kConfigure:
        if (fuzzing::IsSmall(call.configure().routing())) Call("Configure", call.configure());
        return;
      case fuzz::WorkerCall::kInstallDataset: {
        pb::InstallDatasetRequest request = call.install_dataset();
        if (request.dataset().records().modulo() > kMostModulo) return;
        // Devices and pipes would hang.
        for (std::string& file : *request.mutable_dataset()->mutable_files())
          file = absl::StrCat(directory_, "/data", file.size() % 4);
        return Call("InstallDataset", request);
      }
      case fuzz::WorkerCall::kScanFile:
        return Call("ScanFile", call.scan_file());
      case fuzz::WorkerCall::kInstallFunction:
        return InstallFunction(call.install_function(), call.wrong_fingerprint());
      case fuzz::WorkerCall::kRun:
        return Run(call.run(), call);
      case fuzz::WorkerCall::kCancelRuns:
        return Call("CancelRuns", call.cancel_runs());
      case fuzz::WorkerCall::kRaw:
        if (call.raw().method() == "CancelRuns" || call.raw().method() == "GetTelemetry")
          Call(call.raw().method(), Buffer(call.raw().request()));
        return;
      case fuzz::WorkerCall::CALL_NOT_SET:
        return;
    }
  }

 private:
  static WorkerOptions OptionsIn(const std::string& directory, Telemetry* telemetry) {
    WorkerOptions options;
    options.cache_dir = directory + "/cache";
    options.lease_bytes = 1 << 20;
    options.servers.call_timeout = absl::Milliseconds(200);
    options.servers.total_timeout = absl::Milliseconds(5);
    options.servers.first_backoff = absl::Microseconds(500);
    options.telemetry = telemetry;
    return options;
  }

  void Call(const std::string& method, const google::protobuf::MessageLite& request) {
    Call(method, Buffer(request.SerializeAsString()));
  }
  void Call(const std::string& method, Buffer request) {
    fuzzing::CallHandler(methods_, "/muster.Worker/" + method, std::move(request));
  }

  void InstallFunction(pb::InstallFunctionRequest request, bool wrong_fingerprint) {
    if (VerifyFunction(request.function(), GraphStage::kLowered).ok()) {
      if (!fuzzing::IsSmall(request.function(), kMostRecords)) return;
      if (!wrong_fingerprint) request.set_fingerprint(FingerprintOf(request.function()).value());
    }
    fingerprint_ = request.fingerprint();
    Call("InstallFunction", request);
  }

  void Run(pb::RunRequest request, const fuzz::WorkerCall& call) {
    if (!call.wrong_fingerprint()) request.set_fingerprint(fingerprint_);
    request.set_steps(std::min(request.steps(), kMostSteps));
    if (feed_ == nullptr) {
      pb::FeedRequest first;
      *first.mutable_hello()->mutable_context() = request.context();
      first.mutable_hello()->set_stream(1);
      first.mutable_hello()->set_connection(1);
      feed_ =
          fuzzing::CallHandler(methods_, "/muster.Worker/Feed", Buffer(first.SerializeAsString()));
      if (feed_->Wait(absl::ZeroDuration())) feed_ = nullptr;  // refused
    }
    if (feed_ == nullptr) return;
    pb::FeedRequest said;
    said.set_number(++said_);
    for (const pb::FeedLease& lease : call.leases()) {
      if (lease.lease().blocks_size() <= kMostBlocks) *said.add_leases() = lease;
    }
    *said.add_runs() = std::move(request);
    feed_->Hear(Buffer(said.SerializeAsString()));
  }

  const std::string directory_;
  Telemetry telemetry_;
  const std::unique_ptr<Transport> transport_;
  PsServer server_;
  std::unique_ptr<RpcServer> listening_;
  WorkerServer worker_;
  MethodTable methods_;
  uint64_t fingerprint_ = 0;  // of the function that was installed last
  std::shared_ptr<fuzzing::RecordedCall> feed_;
  uint64_t said_ = 0;
};

}  // namespace
}  // namespace mu

MUSTER_FUZZ_MESSAGE(muster::fuzz::WorkerCalls) {
  static const mu::fuzzing::ScratchDirectory files;
  mu::SetLogSeverity(mu::LogSeverity::OFF);
  for (int i = 0; i < std::min(input.files_size(), 4); ++i)
    files.Write(absl::StrCat("data", i), input.files(i));
  {
    mu::FuzzedWorker worker(files.path());
    if (input.configured()) worker.Configure();
    int made = 0;
    for (const auto& call : input.calls()) {
      if (++made > mu::kMostCalls) break;
      worker.Make(call);
    }
  }
  files.Clear();
}
