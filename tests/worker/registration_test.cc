// A worker belongs to the coordinator that it registers with, also when another one's requests are
// quicker than the answer to its registration. Requests that come before that answer wait for it.
#include <memory>
#include <string>
#include <vector>

#include "common/env/file.h"
#include "common/rpc/typed.h"
#include "tests/testing/matchers.h"
#include "tests/testing/raw_stream.h"
#include "worker/worker_server.h"

namespace mu {
namespace {

using testing::HasCode;

constexpr uint64_t kJob = 5, kForeign = 6;

class RegistrationTest : public ::testing::Test {
 protected:
  RegistrationTest() : directory_(TempDirectory::Create("muster-registration").value()) {
    WorkerOptions options;
    options.registers = true;
    options.cache_dir = directory_.path();
    options.telemetry = &telemetry_;
    worker_ = std::make_unique<WorkerServer>(options, network_.get());
    MethodTable methods;
    worker_->AddMethods(&methods);
    rpc_ = network_->Listen("memory:0", std::move(methods)).value();
    channel_ = network_->Connect(rpc_->address(), pb::ROLE_PSSERVER);
  }
  ~RegistrationTest() override { rpc_->Shutdown(); }

  struct Answer {
    Notification done;
    absl::Status status;
  };
  template <typename Reply, typename Request>
  std::shared_ptr<Answer> Send(const std::string& method, uint64_t job,
                               Request request = Request()) {
    request.mutable_context()->set_job(job);
    request.mutable_context()->set_epoch(1);
    auto answer = std::make_shared<Answer>();
    CallAsync<Reply>(*channel_, "/muster.Worker/" + method, request, {},
                     [answer](absl::StatusOr<Reply> reply) {
                       answer->status = reply.status();
                       answer->done.Notify();
                     });
    return answer;
  }
  // Of every method that a coordinator calls before it runs something.
  std::vector<std::shared_ptr<Answer>> SendAll(uint64_t job) {
    pb::InstallDatasetRequest install;
    install.mutable_dataset()->set_id(1);
    install.mutable_dataset()->set_batch_size(1);
    install.mutable_dataset()->mutable_criteo_tsv()->set_hash_buckets(10);
    install.mutable_dataset()->add_files("/nowhere");
    return {Send<pb::ConfigureWorkerReply, pb::ConfigureWorkerRequest>("Configure", job),
            Send<pb::InstallDatasetReply>("InstallDataset", job, install),
            Send<pb::CancelRunsReply, pb::CancelRunsRequest>("CancelRuns", job)};
  }

  Telemetry telemetry_;
  TempDirectory directory_;
  const std::unique_ptr<Transport> network_ = NewMemoryTransport();
  std::unique_ptr<WorkerServer> worker_;
  std::unique_ptr<RpcServer> rpc_;
  std::shared_ptr<Channel> channel_;
};

TEST_F(RegistrationTest, AForeignCoordinatorMayBeFirst) {
  const auto foreign = SendAll(kForeign);
  const auto own = SendAll(kJob);
  // What must not wait is refused for now; nobody sends it before the others are answered.
  pb::FeedRequest hello;
  hello.mutable_hello()->mutable_context()->set_job(kForeign);
  hello.mutable_hello()->set_stream(1);
  EXPECT_THAT(testing::EndOfStream(*channel_, "/muster.Worker/Feed", {testing::Serialized(hello)}),
              HasCode(absl::StatusCode::kUnavailable));
  for (const auto& answer : foreign) EXPECT_FALSE(answer->done.HasBeenNotified());
  for (const auto& answer : own) EXPECT_FALSE(answer->done.HasBeenNotified());

  MU_ASSERT_OK(worker_->Registered(kJob, 1, 0));
  for (const auto& answer : own) {
    answer->done.Wait();
    MU_EXPECT_OK(answer->status);
  }
  for (const auto& answer : foreign) {
    answer->done.Wait();
    EXPECT_EQ(KindOf(answer->status), pb::ERROR_OTHER_JOB) << answer->status;
  }
  for (const auto& answer : SendAll(kForeign)) {
    answer->done.Wait();
    EXPECT_EQ(KindOf(answer->status), pb::ERROR_OTHER_JOB) << answer->status;
  }
}

TEST_F(RegistrationTest, NobodyWaitsForOneThatLeaves) {
  const auto waiting = SendAll(kJob);
  worker_->Drain(absl::Seconds(1));
  for (const auto& answer : waiting) {
    answer->done.Wait();
    EXPECT_THAT(answer->status, HasCode(absl::StatusCode::kUnavailable));
  }
}

}  // namespace
}  // namespace mu
