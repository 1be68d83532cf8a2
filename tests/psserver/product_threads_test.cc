// Which threads of a server compute products, and who waits for them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "common/base/mutex.h"
#include "common/env/file.h"
#include "common/sharding/placement.h"
#include "psserver/server.h"
#include "tests/psserver/frames.h"
#include "tests/psserver/model.h"
#include "tests/psserver/stop.h"
#include "tests/testing/matchers.h"

namespace mu {
namespace {

using ::mu::testing::Bytes;
using ::mu::testing::Frame;
using ::mu::testing::HasCode;

constexpr uint32_t kSteps = 2, kKernel = 5, kPartitions = 3;  // of SmallModel
constexpr size_t kRows = 100, kColumns = 700, kBatch = 2;     // of a partition of the kernel

// What a call is answered, and on which thread.
template <typename Reply>
struct Answer {
  Notification came;
  absl::StatusOr<Reply> reply = absl::InternalError("no answer");
  std::thread::id thread;

  std::function<void(absl::StatusOr<Reply>)> Take() {
    return [this](absl::StatusOr<Reply> given) {
      reply = std::move(given);
      thread = std::this_thread::get_id();
      came.Notify();
    };
  }
  const absl::StatusOr<Reply>& Wait() {
    came.Wait();
    return reply;
  }
  bool OnThisThread() {
    came.Wait();
    return thread == std::this_thread::get_id();
  }
};

class ProductThreadsTest : public ::testing::Test {
 protected:
  // `most_copies`: as PsServerOptions has it.
  void Start(int threads, const pb::RoutingProto& model = testing::SmallModel(1),
             size_t most_copies = 0) {
    server_ = std::make_unique<PsServer>(
        PsServerOptions{.telemetry = &telemetry_,
                        .most_copies = most_copies,
                        .compute_threads = threads,
                        .at = [this](absl::string_view moment) { stop_.At(moment); }});
    pb::ConfigurePsRequest request;
    context_.set_job(1);
    context_.set_epoch(1);
    context_.set_generation(1);
    *request.mutable_context() = context_;
    *request.mutable_routing() = model;
    MU_ASSERT_OK(server_->Configure(request));
  }
  // Of all partitions of the kernel, or of another variable as a whole.
  void Pull(bool product, Answer<Buffer>* answer, bool abandoned = false) {
    pb::PullRequest request;
    *request.mutable_context() = context_;
    std::string payload;
    if (product) {
      for (uint32_t p = 0; p < kPartitions; ++p) {
        auto* key = request.add_products();
        key->set_variable(kKernel);
        key->set_partition(p);
        key->set_rows(kBatch);
      }
      payload = Bytes(std::vector<float>(kBatch * kColumns, 1.0f));
    } else {
      request.add_variables()->set_variable(kSteps);
    }
    server_->Pull(
        Frame(request, payload), [abandoned] { return abandoned; }, answer->Take());
  }
  // Of function 1; `round` 0: asynchronous.
  void Push(bool product, uint64_t round, Answer<pb::PushReply>* answer, bool abandoned = false) {
    pb::PushRequest request;
    *request.mutable_context() = context_;
    request.set_function(1);
    request.set_job_step(1);
    request.set_round(round);
    request.set_most_contributions(4);
    std::string payload;
    if (product) {
      for (uint32_t p = 0; p < kPartitions; ++p) {
        auto* update = request.add_variables();
        update->set_variable(kKernel);
        update->set_partition(p);
        update->set_kind(pb::VariableUpdate::PRODUCT_GRADIENT);
        update->set_rows(kBatch);
        payload += Bytes(std::vector<float>(kBatch * kRows, 0.5f));
        if (p == 0) payload += Bytes(std::vector<float>(kBatch * kColumns, 0.5f));
      }
    } else {
      auto* update = request.add_variables();
      update->set_variable(kSteps);
      update->set_kind(pb::VariableUpdate::ASSIGN_ADD);
      payload = Bytes<int64_t>({1});
    }
    server_->Push(Frame(request, payload), answer->Take(), [abandoned] { return abandoned; });
  }

  Telemetry telemetry_;
  testing::Stop stop_;
  pb::RequestContext context_;
  std::unique_ptr<PsServer> server_;
};

// The transport's threads bring heartbeats as well.
TEST_F(ProductThreadsTest, ComputeOnOtherThreadsThanTheTransports) {
  Start(1);
  Answer<Buffer> product, values;
  Pull(/*product=*/true, &product);
  EXPECT_FALSE(product.OnThisThread());
  MU_EXPECT_OK(product.Wait());
  Pull(/*product=*/false, &values);
  EXPECT_TRUE(values.OnThisThread());
  MU_EXPECT_OK(values.Wait());
  for (const uint64_t round : {0, 1}) {
    Answer<pb::PushReply> gradients;
    Push(/*product=*/true, round, &gradients);
    EXPECT_FALSE(gradients.OnThisThread());
    MU_EXPECT_OK(gradients.Wait());
  }
  EXPECT_EQ(telemetry_.timer("ps.compute_wait", "")->count(), 3u);
}

TEST_F(ProductThreadsTest, ThatAreIdleShareThePartitionsOfACall) {
  Start(kPartitions);
  stop_.Hold("product");
  Answer<Buffer> product;
  Pull(/*product=*/true, &product);
  stop_.AwaitCalls("product", kPartitions);
  stop_.Release();
  MU_EXPECT_OK(product.Wait());
  stop_.Hold("product");
  Answer<pb::PushReply> gradients;
  Push(/*product=*/true, 0, &gradients);
  stop_.AwaitCalls("product", 2 * kPartitions);
  stop_.Release();
  MU_EXPECT_OK(gradients.Wait());
}

// Its caller has given up while it was queued, and asks again: computing it would make the queue
// longer with each try.
TEST_F(ProductThreadsTest, DoNotComputeWhatNobodyWaitsFor) {
  Start(1);
  stop_.Hold("product");
  Answer<Buffer> first, abandoned, last;
  Pull(/*product=*/true, &first);
  stop_.AwaitCalls("product", 1);
  Pull(/*product=*/true, &abandoned, /*abandoned=*/true);
  Pull(/*product=*/true, &last);
  stop_.Release();
  MU_EXPECT_OK(first.Wait());
  EXPECT_THAT(abandoned.Wait(), HasCode(absl::StatusCode::kCancelled));
  MU_EXPECT_OK(last.Wait());
  EXPECT_EQ(stop_.calls("product"), 2 * static_cast<int>(kPartitions));
}

TEST_F(ProductThreadsTest, DoNotComputeGradientsThatNobodyWaitsFor) {
  for (const uint64_t round : {0, 1}) {
    SCOPED_TRACE(round);
    Start(1);
    const int before = stop_.calls("product");
    stop_.Hold("product");
    Answer<Buffer> first;
    Answer<pb::PushReply> abandoned, again;
    Pull(/*product=*/true, &first);
    stop_.AwaitCalls("product", before + 1);
    Push(/*product=*/true, round, &abandoned, /*abandoned=*/true);
    Push(/*product=*/true, round, &again);
    stop_.Release();
    MU_EXPECT_OK(first.Wait());
    EXPECT_THAT(abandoned.Wait(), HasCode(absl::StatusCode::kCancelled));
    MU_ASSERT_OK(again.Wait());
    EXPECT_FALSE(again.reply->repeated());
    EXPECT_EQ(stop_.calls("product"), before + 2 * static_cast<int>(kPartitions));
  }
}

// A push may compute for longer than its caller waits: what comes again waits for it.
TEST_F(ProductThreadsTest, ComputeTheGradientsOfAPushOnce) {
  for (const uint64_t round : {0, 1}) {
    SCOPED_TRACE(round);
    Start(1);
    const int before = stop_.calls("product");
    stop_.Hold("product");
    Answer<pb::PushReply> first, repeat;
    Push(/*product=*/true, round, &first);
    stop_.AwaitCalls("product", before + 1);
    // By its identity a repeat; it needs none of the threads, so it is looked at now.
    Push(/*product=*/false, round, &repeat);
    EXPECT_FALSE(repeat.came.HasBeenNotified());
    stop_.Release();
    MU_ASSERT_OK(first.Wait());
    EXPECT_FALSE(first.reply->repeated());
    MU_ASSERT_OK(repeat.Wait());
    EXPECT_TRUE(repeat.reply->repeated());
    EXPECT_EQ(stop_.calls("product"), before + static_cast<int>(kPartitions));
  }
}

// As other pushes do: copies of what they change would fill the memory otherwise.
TEST_F(ProductThreadsTest, WaitForTheWriterOfACheckpoint) {
  constexpr uint32_t kLarge = 4, kLast = 50, kLastRows = 6, kLastColumns = 5;
  pb::RoutingProto model = testing::SmallModel(1);
  pb::VariableProto& large = *model.mutable_variables(kLarge);
  large.mutable_shape()->set_dims(0, 4 << 20);
  large.clear_partition_starts();
  large.clear_placement();
  pb::VariableProto& last = *model.add_variables();  // written after the large one
  last = model.variables(0);
  last.set_id(kLast);
  last.set_name("last");
  MU_ASSERT_OK(PlaceAll(&model));
  Start(1, model, /*most_copies=*/1);
  MU_ASSERT_OK_AND_ASSIGN(const TempDirectory directory,
                          TempDirectory::Create("muster_product_threads_test"));
  // Nothing else is pushed. The first one after a cut takes all of the memory for copies.
  const Timer* const waits = telemetry_.timer("ps.push_wait", "");
  std::atomic<bool> saved = false;
  std::thread pushes([&] {
    for (uint32_t step = 0; !saved && waits->count() == 0; ++step) {
      pb::PushRequest request;
      *request.mutable_context() = context_;
      request.set_function(1);
      request.set_step(step);
      auto* update = request.add_variables();
      update->set_variable(kLast);
      update->set_kind(pb::VariableUpdate::PRODUCT_GRADIENT);
      update->set_rows(1);
      std::vector<float> factors(kLastRows + kLastColumns, 0.5f);
      factors.push_back(0);  // what follows begins at a multiple of 8
      Answer<pb::PushReply> answer;
      server_->Push(Frame(request, Bytes(factors)), answer.Take());
      MU_EXPECT_OK(answer.Wait());
    }
  });
  pb::SaveRequest save;
  *save.mutable_context() = context_;
  save.set_directory(directory.path());
  save.set_file("file");
  for (int i = 0; i < 50 && waits->count() == 0; ++i) MU_EXPECT_OK(server_->Save(save));
  saved = true;
  pushes.join();
  EXPECT_GT(waits->count(), 0u);
}

// A push that waits for the disk keeps no thread that others need.
TEST_F(ProductThreadsTest, ComputeForOthersWhileAPushWaitsForTheDisk) {
  Start(/*threads=*/1, testing::SmallModel(1), /*most_copies=*/1);
  MU_ASSERT_OK_AND_ASSIGN(const TempDirectory directory,
                          TempDirectory::Create("muster_product_threads_test"));
  pb::SaveRequest save;
  *save.mutable_context() = context_;
  save.set_directory(directory.path());
  save.set_file("file");
  stop_.Hold("save");
  absl::StatusOr<pb::SaveReply> saved = absl::InternalError("no answer");
  std::thread saver([&] { saved = server_->Save(save); });
  stop_.AwaitCalls("save", 1);
  Answer<pb::PushReply> first, second;
  Push(/*product=*/true, /*round=*/0, &first);
  MU_EXPECT_OK(first.Wait());  // its copies take all of the memory
  Push(/*product=*/true, /*round=*/0, &second);
  Answer<Buffer> pulled;
  Pull(/*product=*/true, &pulled);
  MU_EXPECT_OK(pulled.Wait());
  stop_.Release();
  saver.join();
  MU_EXPECT_OK(saved) << "the pull had to wait until the save was given up";
  MU_EXPECT_OK(second.Wait());
}

TEST_F(ProductThreadsTest, GiveTheSameBitsInAnyNumber) {
  const auto bits = [this](int threads) {
    Start(threads);
    Answer<Buffer> before, after;
    Answer<pb::PushReply> gradients;
    Pull(/*product=*/true, &before);
    MU_EXPECT_OK(before.Wait());
    Push(/*product=*/true, 0, &gradients);
    MU_EXPECT_OK(gradients.Wait());
    Pull(/*product=*/true, &after);
    MU_EXPECT_OK(after.Wait());
    const auto text = [](const Buffer& reply) { return std::string(reply.data(), reply.size()); };
    EXPECT_NE(text(*before.reply), text(*after.reply));
    return text(*before.reply) + text(*after.reply);
  };
  const std::string one = bits(1);
  EXPECT_EQ(bits(2), one);
  EXPECT_EQ(bits(kPartitions), one);
}

}  // namespace
}  // namespace mu
