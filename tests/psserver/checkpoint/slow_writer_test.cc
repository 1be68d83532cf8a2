// Pushes wait for a disk that is slow, as long as it writes, and not for one that hangs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/base/mutex.h"
#include "common/checkpoint/safetensors.h"
#include "common/checkpoint/tensor_names.h"
#include "common/env/file.h"
#include "common/sharding/placement.h"
#include "psserver/server.h"
#include "tests/psserver/frames.h"
#include "tests/psserver/stop.h"
#include "tests/testing/matchers.h"

namespace mu {
namespace {

using ::mu::testing::Bytes;
using ::mu::testing::Frame;
using ::mu::testing::HasCode;
using ::mu::testing::PushAndWait;
using ::mu::testing::StatusIs;
using ::testing::Each;
using ::testing::HasSubstr;

constexpr uint32_t kVariables = 20;
constexpr size_t kElements = 100;

// Dense variables from 0. Each push adds 1 to all of them, so that the first one after a cut copies
// everything. There is no room for a second copy.
class SlowWriterTest : public ::testing::Test {
 protected:
  void SetUp() override {
    MU_ASSERT_OK_AND_ASSIGN(auto directory, TempDirectory::Create("muster_slow_writer_test"));
    directory_ = std::make_unique<TempDirectory>(std::move(directory));
  }
  // A server that holds a save as soon as it has taken its cut, until stop_.Release(). From then on
  // each piece of it takes `delay`.
  void Start(absl::Duration most_wait, absl::Duration delay = absl::ZeroDuration()) {
    const auto at = [this, delay](absl::string_view moment) {
      stop_.At(moment);
      if (moment == "save") disk_is_fast_.WaitFor(delay);
    };
    server_ = std::make_unique<PsServer>(PsServerOptions{
        .telemetry = &telemetry_, .most_copies = 1, .most_wait = most_wait, .at = at});
    pb::ConfigurePsRequest request;
    context_.set_job(1);
    context_.set_epoch(1);
    context_.set_generation(1);
    *request.mutable_context() = context_;
    pb::RoutingProto* const routing = request.mutable_routing();
    routing->set_version(1);
    routing->add_servers();
    for (uint32_t id = 0; id < kVariables; ++id) {
      pb::VariableProto* const variable = routing->add_variables();
      variable->set_id(id);
      variable->set_name(absl::StrCat("dense_", id));
      variable->set_dtype(pb::FLOAT32);
      variable->mutable_shape()->add_dims(kElements);
      variable->mutable_optimizer()->mutable_sgd()->set_learning_rate(1);
    }
    MU_ASSERT_OK(PlaceAll(routing));
    MU_ASSERT_OK(server_->Configure(request));
    stop_.Hold("save");
  }
  absl::StatusOr<pb::SaveReply> Save(const std::string& file) {
    pb::SaveRequest request;
    *request.mutable_context() = context_;
    request.set_directory(directory_->path());
    request.set_file(file);
    return server_->Save(request);
  }
  Buffer PushOf(uint32_t step) const {
    pb::PushRequest request;
    *request.mutable_context() = context_;
    request.set_function(1);
    request.set_step(step);
    for (uint32_t id = 0; id < kVariables; ++id) {
      pb::VariableUpdate* const update = request.add_variables();
      update->set_variable(id);
      update->set_kind(pb::VariableUpdate::GRADIENT);
    }
    return Frame(request, Bytes(std::vector<float>(kVariables * kElements, -1.0f)));
  }
  // What the pushes have made of a value.
  float Value() {
    pb::PullRequest request;
    *request.mutable_context() = context_;
    request.add_variables()->set_variable(kVariables - 1);
    const absl::StatusOr<Buffer> reply = server_->Pull(Frame(request, ""));
    EXPECT_THAT(reply, testing::IsOk());
    if (!reply.ok()) return -1;
    pb::PullReply header;
    const auto payload = ParseFrame(*reply, &header);
    EXPECT_THAT(payload, testing::IsOk());
    float value = -1;
    if (payload.ok() && payload->size() >= sizeof(value))
      std::memcpy(&value, payload->data(), sizeof(value));
    return value;
  }
  // Of the last variable in a file.
  std::vector<float> Saved(const std::string& file) {
    const auto reader = SafetensorsReader::Open(JoinPath(directory_->path(), file));
    EXPECT_THAT(reader, testing::IsOk());
    if (!reader.ok()) return {};
    const TensorEntry* const entry =
        reader->Find(VariableTensorName(absl::StrCat("dense_", kVariables - 1), 0, "value"));
    if (entry == nullptr) return {};
    std::vector<float> values(kElements);
    MU_EXPECT_OK(reader->Read(*entry, 0, values.data(), values.size() * sizeof(float)));
    return values;
  }

  std::unique_ptr<TempDirectory> directory_;
  Notification disk_is_fast_;  // never
  testing::Stop stop_;
  Telemetry telemetry_;
  pb::RequestContext context_;
  std::unique_ptr<PsServer> server_;
};

// Some 40 pieces: three times as long as a push waits for one that does not come.
TEST_F(SlowWriterTest, PushesWaitAsLongAsItWrites) {
  Start(/*most_wait=*/absl::Seconds(1), /*delay=*/absl::Milliseconds(75));
  absl::StatusOr<pb::SaveReply> saved = absl::InternalError("no answer");
  std::thread saver([&] { saved = Save("file"); });
  stop_.AwaitCalls("save", 1);
  MU_EXPECT_OK(PushAndWait(server_.get(), PushOf(0)));
  Notification answered;
  absl::StatusOr<pb::PushReply> pushed = absl::InternalError("no answer");
  server_->Push(PushOf(1), [&](absl::StatusOr<pb::PushReply> reply) {
    pushed = std::move(reply);
    answered.Notify();
  });
  EXPECT_FALSE(answered.HasBeenNotified()) << "it waits for the copies of the first one";
  stop_.Release();
  saver.join();
  answered.Wait();
  MU_EXPECT_OK(saved);
  MU_EXPECT_OK(pushed);
  EXPECT_EQ(Value(), 2);
  EXPECT_THAT(Saved("file"), ::testing::AllOf(::testing::SizeIs(kElements), Each(0)));
}

TEST_F(SlowWriterTest, OneThatHangsEndsItsSaveAndHoldsUpNobody) {
  Start(/*most_wait=*/absl::Milliseconds(200));
  absl::StatusOr<pb::SaveReply> saved = absl::InternalError("no answer");
  std::thread saver([&] { saved = Save("file"); });
  stop_.AwaitCalls("save", 1);
  // The second one waits in vain; the third one need not: there is no cut any more.
  for (uint32_t step = 0; step < 3; ++step) MU_EXPECT_OK(PushAndWait(server_.get(), PushOf(step)));
  EXPECT_EQ(Value(), 3);
  EXPECT_EQ(telemetry_.timer("ps.push_wait", "")->count(), 1u);
  stop_.Release();
  saver.join();
  EXPECT_THAT(saved,
              StatusIs(absl::StatusCode::kAborted, HasSubstr("nothing was written for 200ms")));
  MU_EXPECT_OK(Save("later"));
  EXPECT_THAT(Saved("later"), ::testing::AllOf(::testing::SizeIs(kElements), Each(3)));
}

// Its caller has sent it again, or has given up: it would keep its memory until the disk is done.
TEST_F(SlowWriterTest, APushThatNobodyWaitsForAnyMoreLeaves) {
  Start(/*most_wait=*/absl::Minutes(10));
  absl::StatusOr<pb::SaveReply> saved = absl::InternalError("no answer");
  std::thread saver([&] { saved = Save("file"); });
  stop_.AwaitCalls("save", 1);
  MU_EXPECT_OK(PushAndWait(server_.get(), PushOf(0)));
  std::atomic<bool> abandoned = false;
  Notification answered;
  absl::StatusOr<pb::PushReply> pushed = absl::InternalError("no answer");
  server_->Push(
      PushOf(1),
      [&](absl::StatusOr<pb::PushReply> reply) {
        pushed = std::move(reply);
        answered.Notify();
      },
      [&] { return abandoned.load(); });
  EXPECT_FALSE(answered.HasBeenNotified());
  abandoned = true;
  answered.Wait();
  EXPECT_THAT(pushed, HasCode(absl::StatusCode::kCancelled));
  EXPECT_EQ(Value(), 1);
  stop_.Release();
  saver.join();
  MU_EXPECT_OK(saved) << "the save goes on";
  MU_EXPECT_OK(PushAndWait(server_.get(), PushOf(1)));
  EXPECT_EQ(Value(), 2);
}

}  // namespace
}  // namespace mu
