// A core with a job, a generation and a lease, and requests for it.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "common/base/status.h"
#include "psserver/core/server_core.h"
#include "tests/testing/matchers.h"

namespace mu::testing {

class ServerCoreTest : public ::testing::Test {
 protected:
  static constexpr uint64_t kGeneration = 7;

  ServerCoreTest() { Configure(&core_); }

  void Configure(ServerCore* core) {
    MU_ASSERT_OK(core->SetIdentity(/*job=*/1, /*epoch=*/1, /*index=*/0));
    core->RenewLease(/*sent_ns=*/0, absl::Nanoseconds(1000), kGeneration);
    MU_ASSERT_OK(core->AdmitConfigure(Context(), 0));
    MU_ASSERT_OK(core->BeginConfigure(Context()).status());
    core->EndConfigure(Context(), DefinitionsChange::kAdded);
  }
  static pb::RequestContext Context(uint64_t generation = kGeneration, uint64_t low_water = 0,
                                    uint64_t epoch = 1) {
    pb::RequestContext context;
    context.set_job(1);
    context.set_epoch(epoch);
    context.set_generation(generation);
    context.set_low_water(low_water);
    return context;
  }
  static PartitionKey Key(uint32_t partition) {
    return {PartitionKey::Kind::kVariable, 0, partition};
  }

  // A push to partitions 0 to 3.
  PushBegun Begin(const PushId& id, const pb::RequestContext& context = Context()) {
    const auto for_each = [](PushPartitions::Visit visit) {
      for (uint32_t p = 0; p < 4; ++p) visit(Key(p));
    };
    return core_.BeginPush(now_, context, id, {4, for_each}, PsCallId(++calls_));
  }
  PushBegun::Step StepOf(const PushId& id, const pb::RequestContext& context = Context()) {
    return Begin(id, context).step;
  }
  // What is admitted, and must be.
  AdmittedPush Admit(const PushId& id, const pb::RequestContext& context = Context()) {
    PushBegun begun = Begin(id, context);
    EXPECT_EQ(begun.step, PushBegun::Step::kApply) << begun.answer.status;
    return std::move(begun.push);
  }
  AdmittedPush AdmitAndEnter(const PushId& id, const pb::RequestContext& context = Context()) {
    AdmittedPush push = Admit(id, context);
    EXPECT_EQ(Enter(&push), PushEntered::Step::kApply);
    return push;
  }
  PushEntered::Step Enter(AdmittedPush* push) { return core_.Enter(now_, push).step; }
  PushEnded End(const AdmittedPush& push, const absl::Status& applied = absl::OkStatus()) {
    return core_.EndPush(now_, push, applied);
  }
  // From its beginning to its end.
  PushAnswer Push(const PushId& id, const pb::RequestContext& context = Context()) {
    PushBegun begun = Begin(id, context);
    if (begun.step == PushBegun::Step::kAnswer) return begun.answer;
    EXPECT_EQ(begun.step, PushBegun::Step::kApply);
    const PushEntered entered = core_.Enter(now_, &begun.push);
    return End(begun.push, entered.status).answer;
  }

  static RestoreAsked Keep() { return {true, false, "keep"}; }
  static RestoreAsked Initial() { return {false, false, "nothing"}; }
  static RestoreAsked Files(const std::string& content = "files") { return {false, true, content}; }
  RestoreTurn::Step BeginRestore(uint64_t generation, const RestoreAsked& asked,
                                 bool verified = true, uint64_t low_water = 0) {
    RestoreTurn turn = core_.BeginRestore(Context(generation, low_water), asked, verified);
    refused_ = turn.status;
    reply_ = turn.reply;
    return turn.step;
  }
  static pb::RestoreReply Restored(uint64_t updates = 0) {
    pb::RestoreReply reply;
    reply.set_updates(updates);
    return reply;
  }
  // Begins, starts and ends.
  void Restore(uint64_t generation, const RestoreAsked& asked, InheritedMemory memory = {},
               uint64_t low_water = 0) {
    ASSERT_EQ(BeginRestore(generation, asked, true, low_water), RestoreTurn::Step::kBegun)
        << refused_;
    ASSERT_TRUE(core_.RestoreMayStart());
    core_.StartRestore();
    MU_ASSERT_OK(core_.EndRestore(Restored(), std::move(memory)));
  }

  ServerCore core_{{.leased = true, .registers = true}};
  int64_t now_ = 0;
  uint64_t calls_ = 0;
  absl::Status refused_;  // of the last BeginRestore
  pb::RestoreReply reply_;
};

}  // namespace mu::testing
