// A worker and parameter servers in one process, over the memory transport, with the calls that a
// coordinator makes.
#pragma once

#include <algorithm>
#include <deque>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/error_kind.h"
#include "common/client/feed_client.h"
#include "common/client/membership.h"
#include "common/client/ps_admin.h"
#include "common/graph/fingerprint.h"
#include "common/rpc/faults.h"
#include "common/rpc/status_proto.h"
#include "common/rpc/typed.h"
#include "psserver/server.h"
#include "tests/testing/matchers.h"
#include "worker/worker_server.h"

namespace mu::testing {

// A Run under way.
class RunHandle {
 public:
  absl::Status Wait() {
    done_.Wait();
    MutexLock lock(&mutex_);
    return status_;
  }
  void WaitForResults(size_t count) {
    MutexLock lock(&mutex_);
    while (steps_.size() < count) changed_.Wait(&mutex_);
  }
  std::vector<muster::StepResult> steps() const {
    MutexLock lock(&mutex_);
    return steps_;
  }
  bool handed_back() const {
    MutexLock lock(&mutex_);
    return handed_back_;
  }
  void Cancel() { cancel_(); }

 private:
  friend class WorkerCluster;
  mutable Mutex mutex_;
  CondVar changed_;
  std::vector<muster::StepResult> steps_ ABSL_GUARDED_BY(mutex_);
  bool handed_back_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
  Notification done_;
  std::function<void()> cancel_;
};

class WorkerCluster {
 public:
  // The worker gives a server up after `patience`.
  explicit WorkerCluster(int servers = 1, absl::Duration patience = absl::Seconds(20),
                         WorkerOptions options = {})
      : directory_(std::filesystem::temp_directory_path() /
                   absl::StrCat("worker_test_", RandomIdentity())),
        client_([this](const std::string& address) {
          return network_->Connect(address, pb::ROLE_PSSERVER);
        }) {
    std::filesystem::create_directories(directory_);
    worker_network_ = NewFaultyTransport(network_, faults_);
    for (int i = 0; i < servers; ++i) {
      servers_.push_back(std::make_unique<PsServer>());
      ServeAt(i);
      auto* server = routing_.add_servers();
      server->set_index(static_cast<uint32_t>(i));
      server->set_address(rpc_servers_.back()->address());
      server->set_incarnation(1);
    }
    options.cache_dir = (directory_ / "cache").string();
    options.servers.call_timeout = absl::Seconds(1);
    options.servers.total_timeout = patience;
    worker_ = std::make_unique<WorkerServer>(options, worker_network_.get());
    MethodTable methods;
    worker_->AddMethods(&methods);
    worker_rpc_ = network_->Listen("memory:0", std::move(methods)).value();
    channel_ = network_->Connect(worker_rpc_->address(), pb::ROLE_PSSERVER);
    context_.set_job(7);
    context_.set_epoch(1);
  }
  ~WorkerCluster() {
    if (feed_ != nullptr) feed_->Close();
    worker_rpc_->Shutdown();
    worker_.reset();
    rpc_servers_.clear();
    std::filesystem::remove_all(directory_);
  }

  // A new place for a server; the old one is closed if there was one.
  std::string ServeAt(int index) {
    MethodTable methods;
    servers_[index]->RegisterMethods(&methods);
    auto rpc = network_->Listen("memory:0", std::move(methods)).value();
    const std::string address = rpc->address();
    if (static_cast<size_t>(index) < rpc_servers_.size()) {
      rpc_servers_[index] = std::move(rpc);
    } else {
      rpc_servers_.push_back(std::move(rpc));
    }
    return address;
  }
  void StopServing(int index) { rpc_servers_[index]->Shutdown(); }

  // A variable of one partition per row, dealt out to the servers in turn; a scalar has one.
  void AddVariable(const std::string& name, DType dtype, const Shape& shape,
                   float learning_rate = 0) {
    auto* variable = routing_.add_variables();
    variable->set_id(static_cast<uint32_t>(routing_.variables_size() - 1));
    variable->set_name(name);
    variable->set_dtype(dtype);
    *variable->mutable_shape() = shape.ToProto();
    if (learning_rate > 0) {
      variable->set_trainable(true);
      variable->mutable_optimizer()->mutable_sgd()->set_learning_rate(learning_rate);
    }
    const int64_t partitions = shape.rank() == 0 ? 1 : shape[0];
    for (int64_t p = 0; p < partitions; ++p) {
      variable->add_partition_starts(p);
      variable->add_placement(static_cast<uint32_t>(p % routing_.servers_size()));
    }
  }
  void AddTable(const std::string& name, uint64_t rows, uint32_t dim) {
    auto* table = routing_.add_tables();
    table->set_id(static_cast<uint32_t>(routing_.tables_size() - 1));
    table->set_name(name);
    table->set_rows(rows);
    table->set_dim(dim);
    table->mutable_initializer()->mutable_uniform()->set_low(-1);
    table->mutable_initializer()->mutable_uniform()->set_high(1);
    table->mutable_optimizer()->mutable_adagrad()->set_learning_rate(0.1f);
    table->set_partitions(8);
    for (uint32_t p = 0; p < 8; ++p) table->add_placement(p % routing_.servers_size());
  }

  // Servers and worker get the routing as it is now.
  absl::Status Configure() {
    routing_.set_version(routing_.version() + 1);
    MU_RETURN_IF_ERROR(client_.SetRouting(routing_));
    PsAdmin admin(&client_);
    MU_RETURN_IF_ERROR(admin.Configure(context_));
    return ConfigureWorker();
  }
  absl::Status ConfigureWorker() {
    muster::ConfigureWorkerRequest request;
    *request.mutable_routing() = routing_;
    return CallWorker<muster::ConfigureWorkerReply>("Configure", request).status();
  }

  // A csv file with one column, one number a line, and a dataset of it as id 1. "" is a bad line.
  absl::Status InstallData(const std::vector<std::string>& lines, uint32_t batch_size,
                           muster::OnBadRecord on_bad = muster::ON_BAD_RECORD_FAIL) {
    std::ofstream file(data_file());
    for (const auto& line : lines) file << line << "\n";
    file.close();
    muster::InstallDatasetRequest request;
    auto* dataset = request.mutable_dataset();
    dataset->set_id(1);
    dataset->set_name("numbers");
    dataset->add_files(data_file());
    dataset->set_batch_size(batch_size);
    dataset->set_block_records(batch_size);
    dataset->set_on_bad_record(on_bad);
    auto* x = dataset->mutable_csv()->add_columns();
    x->set_name("x");
    x->set_index(0);
    x->set_required(true);
    auto* id = dataset->mutable_csv()->add_columns();
    id->set_name("id");
    id->set_index(0);
    id->set_kind(muster::CsvColumnProto::ID);
    records_ = static_cast<uint32_t>(lines.size());
    batch_size_ = batch_size;
    return CallWorker<muster::InstallDatasetReply>("InstallDataset", request).status();
  }

  absl::Status InstallFunction(const muster::FunctionProto& function) {
    muster::InstallFunctionRequest request;
    *request.mutable_function() = function;
    request.set_fingerprint(FingerprintOf(function).value());
    return CallWorker<muster::InstallFunctionReply>("InstallFunction", request).status();
  }

  // Steps from 0 over the whole file, as one lease.
  muster::RunRequest MakeRun(uint64_t id, const muster::FunctionProto& function, uint32_t steps) {
    muster::RunRequest request;
    *request.mutable_context() = context_;
    request.set_function(id);
    request.set_fingerprint(FingerprintOf(function).value());
    request.set_steps(steps);
    if (function.dataset() != 0) {
      auto* range = request.add_batches();
      range->set_batches(steps);
      muster::FeedLease& lease = leases_.emplace_back();
      lease.set_id(leases_.size());
      range->set_lease(lease.id());
      lease.mutable_lease()->set_dataset(1);
      for (uint32_t first = 0; first < records_; first += batch_size_) {
        auto* block = lease.mutable_lease()->add_blocks();
        block->set_first(first);
        block->set_count(std::min(batch_size_, records_ - first));
      }
    }
    return request;
  }
  // Gives it a number, unless it has one.
  std::shared_ptr<RunHandle> Start(muster::RunRequest request) {
    auto handle = std::make_shared<RunHandle>();
    if (request.run() == 0) request.set_run(++last_run_);
    muster::FeedRequest said;
    for (const auto& range : request.batches()) {
      if (range.lease() > 0) *said.add_leases() = leases_[range.lease() - 1];
    }
    *said.add_runs() = request;
    {
      MutexLock lock(&mutex_);
      if (feed_ == nullptr) feed_ = OpenFeed(1);
      runs_[request.run()] = handle;
      handle->cancel_ = [feed = feed_, run = request.run()] {
        muster::FeedRequest unwanted;
        unwanted.add_unwanted_runs(run);
        Say(*feed, unwanted);
      };
    }
    Say(*feed_, said);
    return handle;
  }
  // A stream of its own; `on_ended` may be null.
  std::shared_ptr<FeedClient> OpenFeed(
      uint64_t stream, std::function<void(const absl::Status&)> on_ended = nullptr) {
    FeedClient::Options options;
    options.channel = channel_;
    *options.hello.mutable_context() = context_;
    options.hello.set_stream(stream);
    options.give_up = absl::Seconds(20);
    options.on_reply = [this](const muster::FeedReply& reply) {
      for (const std::string& bytes : reply.replies()) OnReply(bytes);
    };
    options.on_ended = [on_ended](const absl::Status& status) {
      if (on_ended != nullptr) on_ended(status);
    };
    return FeedClient::Open(std::move(options));
  }
  static void Say(FeedClient& feed, const muster::FeedRequest& said) {
    feed.Send(said.ByteSizeLong(), [said](std::string* message) { said.AppendToString(message); });
  }
  absl::Status CancelRuns(uint64_t below) {
    muster::CancelRunsRequest request;
    request.set_below(below);
    return CallWorker<muster::CancelRunsReply>("CancelRuns", request).status();
  }

  template <typename Reply, typename Request>
  absl::StatusOr<Reply> CallWorker(const std::string& method, Request request) {
    *request.mutable_context() = context_;
    return Call<Reply>(*channel_, "/muster.Worker/" + method, request);
  }

  Tensor Read(const std::string& name) {
    auto value = PsAdmin(&client_).ReadVariable(context_, name);
    EXPECT_THAT(value, IsOk());
    return *std::move(value);
  }

  std::string data_file() const { return (directory_ / "data.csv").string(); }
  muster::RequestContext& context() { return context_; }
  muster::RoutingProto& routing() { return routing_; }
  FaultPlan& faults() { return *faults_; }
  WorkerServer& worker() { return *worker_; }
  Channel& channel() { return *channel_; }
  PsClient& client() { return client_; }

 private:
  void OnReply(const std::string& bytes) {
    muster::RunReply reply;
    EXPECT_TRUE(reply.ParseFromString(bytes));
    MutexLock lock(&mutex_);
    const auto it = runs_.find(reply.run());
    ASSERT_NE(it, runs_.end());
    const std::shared_ptr<RunHandle> handle = it->second;
    if (reply.has_end()) runs_.erase(it);
    MutexLock of_handle(&handle->mutex_);
    handle->handed_back_ |= reply.handed_back();
    for (auto& step : *reply.mutable_steps()) handle->steps_.push_back(std::move(step));
    handle->changed_.SignalAll();
    if (!reply.has_end()) return;
    handle->status_ = FromWire(FromProto(reply.end()));
    handle->done_.Notify();
  }

  Mutex mutex_;
  std::map<uint64_t, std::shared_ptr<RunHandle>> runs_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<FeedClient> feed_;
  std::deque<muster::FeedLease> leases_;  // ids from 1
  uint64_t last_run_ = 0;
  const std::filesystem::path directory_;
  const std::shared_ptr<FaultPlan> faults_ = std::make_shared<FaultPlan>(1);
  const std::shared_ptr<Transport> network_ = NewMemoryTransport();
  PsClient client_;
  std::unique_ptr<Transport> worker_network_;
  std::vector<std::unique_ptr<PsServer>> servers_;
  std::vector<std::unique_ptr<RpcServer>> rpc_servers_;
  std::unique_ptr<WorkerServer> worker_;
  std::unique_ptr<RpcServer> worker_rpc_;
  std::shared_ptr<Channel> channel_;
  muster::RequestContext context_;
  muster::RoutingProto routing_;
  uint32_t records_ = 0;
  uint32_t batch_size_ = 1;
};

}  // namespace mu::testing
