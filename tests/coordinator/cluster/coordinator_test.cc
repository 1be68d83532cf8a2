// The coordinator with a parameter server in one process, over the transport in memory: what a
// program reads, and what it continues from.
#include "coordinator/cluster/coordinator.h"

#include <atomic>
#include <memory>
#include <string>
#include <utility>

#include "common/base/error_kind.h"
#include "common/env/file.h"
#include "common/rpc/faults.h"
#include "common/rpc/typed.h"
#include "coordinator/cluster/checkpoint_manifest.h"
#include "coordinator/core/deadlines.h"
#include "psserver/server.h"
#include "tests/testing/matchers.h"

namespace mu {
namespace {

using testing::HasCode;
using ::testing::HasSubstr;
using testing::StatusIs;

class CoordinatorTest : public ::testing::Test {
 protected:
  void SetUp() override {
    MU_ASSERT_OK(directory_);
    Coordinator::Options options;
    options.runtime.listen = "";
    options.runtime.telemetry = &telemetry_;
    options.runtime.job = JobId(9);
    options.runtime.epoch = CoordinatorEpoch(5);
    MU_ASSERT_OK_AND_ASSIGN(
        coordinator_, Coordinator::Create(
                          options, NewFaultyTransport(transport_, std::make_shared<FaultPlan>(1))));
    MethodTable methods;
    server_.RegisterMethods(&methods);
    const Handler pull = methods.Find("/muster.PsServer/Pull")->handler;
    methods.AddUnary("/muster.PsServer/Pull", RunOn::kOwnThread,
                     [this, pull](std::shared_ptr<ServerCall> call, Buffer request) {
                       ++pulls_;
                       if (refusals_ == 0) return pull(std::move(call), std::move(request));
                       --refusals_;
                       call->Finish(refusal_);
                     });
    MU_ASSERT_OK_AND_ASSIGN(listening_, transport_->Listen("", std::move(methods)));
    pb::RegisterRequest request;
    request.set_role(pb::ROLE_PSSERVER);
    request.set_address(listening_->address());
    request.set_incarnation(4);
    MU_ASSERT_OK(
        Call<pb::RegisterReply>(*transport_->Connect(coordinator_->address(), pb::ROLE_COORDINATOR),
                                "/muster.Coordinator/Register", request));
    MU_ASSERT_OK_AND_ASSIGN(variable_,
                            coordinator_->CreateVariable(
                                {.name = "w", .shape = {2}, .initializer = Constant{.value = 3}}));
  }
  ~CoordinatorTest() override {
    coordinator_.reset();
    listening_.reset();
  }
  std::string Parent() const { return directory_->path() + "/checkpoints"; }

  absl::StatusOr<TempDirectory> directory_ = TempDirectory::Create("muster-coordinator");
  Telemetry telemetry_;
  const std::shared_ptr<Transport> transport_ = NewMemoryTransport();
  PsServer server_{{.telemetry = &telemetry_}};
  std::unique_ptr<RpcServer> listening_;
  std::unique_ptr<Coordinator> coordinator_;
  Variable variable_;
  std::atomic<int> refusals_{0}, pulls_{0};
  absl::Status refusal_;
};

// Of a generation that ended while the request was on its way, say: the next try has the new one.
TEST_F(CoordinatorTest, AValueIsReadAgainWhenTheServersHaveMovedOn) {
  refusal_ = WithKind(absl::FailedPreconditionError("older"), pb::ERROR_STALE, pb::ROLE_PSSERVER);
  refusals_ = deadlines::kTries - 1;
  MU_ASSERT_OK_AND_ASSIGN(const Tensor value, coordinator_->Read(variable_));
  EXPECT_EQ(value.flat<float>()[1], 3);
  EXPECT_EQ(pulls_, deadlines::kTries);
}

TEST_F(CoordinatorTest, TriesEndAndWhatStaysIsNotTriedAgain) {
  refusal_ = WithKind(absl::FailedPreconditionError("older"), pb::ERROR_STALE, pb::ROLE_PSSERVER);
  refusals_ = 1000;
  EXPECT_THAT(coordinator_->Read(variable_), HasCode(absl::StatusCode::kFailedPrecondition));
  EXPECT_EQ(pulls_, deadlines::kTries);
  pulls_ = 0;
  refusal_ =
      WithKind(absl::InvalidArgumentError("no such thing"), pb::ERROR_USER, pb::ROLE_PSSERVER);
  EXPECT_THAT(coordinator_->Read(variable_), HasCode(absl::StatusCode::kInvalidArgument));
  EXPECT_EQ(pulls_, 1);
}

// Epochs before `since` are those of coordinators of another run in the same directory.
TEST_F(CoordinatorTest, ARunContinuesFromTheCheckpointsOfItsOwnCoordinators) {
  coordinator_->EnableRecovery(Parent());
  coordinator_->StartFresh();
  MU_ASSERT_OK(coordinator_->Checkpoint({}));
  const auto restore = [&](uint64_t since) {
    return coordinator_->Restore(CoordinatorEpoch(since)).status();
  };
  EXPECT_THAT(restore(6), StatusIs(absl::StatusCode::kNotFound, HasSubstr("of this run")));
  MU_EXPECT_OK(restore(5)) << "the run's first coordinator took it";
}

}  // namespace
}  // namespace mu
