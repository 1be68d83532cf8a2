// Membership, queue and data leases: transcripts of events and what follows from them.
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "coordinator/core/data_leases.h"
#include "coordinator/core/function_queue.h"
#include "coordinator/core/membership.h"
#include "tests/coordinator/core/planned_leases.h"
#include "tests/testing/matchers.h"

namespace mu {
namespace {

struct Transcript {
  void operator()(const std::string& event, const std::string& outcome) {
    absl::StrAppend(&text, event, ": ", outcome.empty() ? "-" : outcome, "\n");
  }
  std::string text = "\n";
};

TEST(Transcripts, Membership) {
  Transcript t;
  Membership members({.expected_servers = 2, .timeout = absl::Seconds(10)});
  const auto at = [](int seconds) { return absl::UnixEpoch() + absl::Seconds(seconds); };
  const auto join = [&](pb::Role role, uint64_t incarnation, int index, int seconds) {
    pb::RegisterRequest request;
    request.set_role(role);
    request.set_incarnation(incarnation);
    request.set_address("here:1");
    request.set_index(index);
    const auto registered = members.Register(request, at(seconds));
    std::string outcome = absl::StatusCodeToString(registered.status().code());
    if (registered.ok()) {
      outcome =
          absl::StrCat("index ", registered->member.index, registered->known ? ", known" : "");
      if (registered->replaced)
        absl::StrAppend(&outcome, ", replaces ", registered->replaced->incarnation.value());
    }
    t(absl::StrCat(seconds, "s ", role == pb::ROLE_WORKER ? "worker " : "server ", incarnation),
      outcome);
  };
  const auto beat = [&](pb::Role role, uint64_t incarnation, uint32_t index, int seconds) {
    pb::HeartbeatRequest request;
    request.set_role(role);
    request.set_incarnation(incarnation);
    request.set_index(index);
    t(absl::StrCat(seconds, "s heartbeat of ", incarnation),
      absl::StatusCodeToString(members.Heartbeat(request, at(seconds)).code()));
  };
  absl::Time looked = at(0);
  const auto expire = [&](int seconds) {
    std::vector<Member> lost;
    for (; looked <= at(seconds); looked += absl::Milliseconds(250)) {
      for (const Member& member : members.Expire(looked)) lost.push_back(member);
    }
    t(absl::StrCat(seconds, "s silent"),
      absl::StrJoin(lost, ", ", [](std::string* out, const Member& member) {
        absl::StrAppend(out, member.incarnation.value());
      }));
  };
  join(pb::ROLE_PSSERVER, 1, -1, 0);
  join(pb::ROLE_PSSERVER, 2, 1, 0);
  join(pb::ROLE_PSSERVER, 3, -1, 0);
  join(pb::ROLE_WORKER, 11, -1, 1);
  join(pb::ROLE_WORKER, 11, -1, 2);
  beat(pb::ROLE_PSSERVER, 1, 0, 8);
  expire(11);
  beat(pb::ROLE_PSSERVER, 2, 1, 11);
  join(pb::ROLE_PSSERVER, 4, 1, 12);
  join(pb::ROLE_PSSERVER, 2, 1, 12);
  join(pb::ROLE_PSSERVER, 5, 0, 13);
  beat(pb::ROLE_PSSERVER, 1, 0, 13);
  EXPECT_EQ(t.text, R"(
0s server 1: index 0
0s server 2: index 1
0s server 3: RESOURCE_EXHAUSTED
1s worker 11: index 0
2s worker 11: index 0, known
8s heartbeat of 1: OK
11s silent: 2
11s heartbeat of 2: NOT_FOUND
12s server 4: index 1
12s server 2: FAILED_PRECONDITION
13s server 5: index 0, replaces 1
13s heartbeat of 1: NOT_FOUND
)");
}

TEST(Transcripts, QueueWithCheckpointsAnAssignmentAndARollBack) {
  Transcript t;
  FunctionQueue queue(1, [](uint64_t, WorkerId, uint32_t) { return std::vector<BatchRange>(); });
  const auto dispatch = [&] {
    std::vector<FunctionId> completed;
    std::vector<std::string> starts;
    std::vector<StartRun> runs = queue.Dispatch(&completed);
    for (const StartRun& run : runs) {
      starts.push_back(absl::StrCat("function ", run.function.value(), " on ", run.worker.value(),
                                    " from step ", run.first_step, " of ", run.steps));
    }
    if (const auto next = queue.NextAssignment())
      starts.push_back(absl::StrCat("assignment ", next->value()));
    t("dispatch", absl::StrJoin(starts, ", "));
    return runs.empty() ? StartRun() : runs.front();
  };
  const auto step = [&](const StartRun& run, uint32_t s) {
    t(absl::StrCat("result ", run.function.value(), "/", s),
      queue.StepDone(run.function, run.run, s, 10) ? "delivered" : "not delivered");
  };
  const auto end = [&](const StartRun& run) {
    const auto ended = queue.RunEnded(run.function, run.run);
    t(absl::StrCat("end of ", run.function.value()),
      ended == FunctionQueue::Ended::kCompleted  ? "completed"
      : ended == FunctionQueue::Ended::kRequeued ? "requeued"
                                                 : "ignored");
    t("low water", absl::StrCat(queue.low_water().value()));
  };
  const auto schedule = [&](uint32_t steps) {
    t("schedule", absl::StrCat(queue.Schedule({.steps = steps, .updates = true}).value()));
  };
  queue.WorkerReady(WorkerId(0), 1);
  schedule(2);
  StartRun run = dispatch();
  step(run, 0);
  const auto begun = queue.CheckpointPosition();
  step(run, 1);
  end(run);
  queue.CheckpointCommitted(CheckpointNumber(1), begun);
  const FunctionId assigned = queue.BeginAssignment();
  t("assign", absl::StrCat(assigned.value()));
  queue.Assigned(assigned, std::make_shared<Assignment>());
  schedule(1);
  run = dispatch();
  step(run, 0);
  end(run);
  schedule(2);
  run = dispatch();
  step(run, 0);
  const auto back = queue.RollBack(CheckpointNumber(1));
  t("roll back to 1",
    absl::StrCat(back.functions, " functions, ", back.steps, " steps, ", back.samples, " samples"));
  step(run, 1);
  run = dispatch();
  step(run, 1);
  end(run);
  dispatch();
  queue.AssignmentDone(FunctionId(2));
  run = dispatch();
  step(run, 0);
  end(run);
  run = dispatch();
  step(run, 0);
  step(run, 1);
  end(run);
  queue.CheckpointCommitted(CheckpointNumber(2), queue.CheckpointPosition());
  t("committed 2, low water", absl::StrCat(queue.low_water().value()));
  queue.CheckpointCommitted(CheckpointNumber(3), queue.CheckpointPosition());
  t("committed 3, low water", absl::StrCat(queue.low_water().value()));
  EXPECT_EQ(t.text, R"(
schedule: 1
dispatch: function 1 on 0 from step 0 of 2
result 1/0: delivered
result 1/1: delivered
end of 1: completed
low water: 1
assign: 2
schedule: 3
dispatch: function 3 on 0 from step 0 of 1
result 3/0: delivered
end of 3: completed
low water: 1
schedule: 4
dispatch: function 4 on 0 from step 0 of 2
result 4/0: delivered
roll back to 1: 3 functions, 3 steps, 30 samples
result 4/1: not delivered
dispatch: function 1 on 0 from step 1 of 2
result 1/1: not delivered
end of 1: completed
low water: 1
dispatch: assignment 2
dispatch: function 3 on 0 from step 0 of 1
result 3/0: not delivered
end of 3: completed
low water: 1
dispatch: function 4 on 0 from step 0 of 2
result 4/0: not delivered
result 4/1: delivered
end of 4: completed
low water: 1
committed 2, low water: 1
committed 3, low water: 5
)");
}

TEST(Transcripts, DataLeasesContinueWhereTheyWere) {
  pb::DatasetProto dataset;
  dataset.set_id(1);
  dataset.set_batch_size(10);
  dataset.set_block_records(20);
  dataset.set_shuffle_records(40);
  dataset.set_seed(7);
  dataset.set_epochs(2);
  const std::vector<FileLayout> records = {100, 65};
  Transcript t;
  DataLeases first = testing::BeginLeases(testing::LayoutOf(dataset, records));
  const auto take = [&](DataLeases& leases, uint32_t worker, uint32_t steps) {
    std::vector<std::string> ranges;
    for (const auto& range : testing::Take(leases, WorkerId(worker), steps)) {
      ranges.push_back(absl::StrCat("epoch ", range.lease->epoch(), " lease ", range.lease->index(),
                                    " batches ", range.first_batch, "+", range.batches));
    }
    t(absl::StrCat("worker ", worker, " takes ", steps), absl::StrJoin(ranges, ", "));
  };
  take(first, 0, 3);
  take(first, 1, 1);
  first.Forget(WorkerId(1));
  take(first, 0, 2);
  const pb::DatasetPositionProto position = first.Position();
  t("position",
    absl::StrCat("epoch ", position.epoch(), ", next lease ", position.next_lease(), ", begun ",
                 absl::StrJoin(position.begun(), ", ", [](std::string* out, const auto& begun) {
                   absl::StrAppend(out, begun.lease(), " at ", begun.next_batch());
                 })));
  DataLeases next = testing::BeginLeases(testing::LayoutOf(dataset, records));
  MU_ASSERT_OK(next.Resume(position));
  EXPECT_EQ(next.left(), first.left());
  take(next, 5, 4);
  take(next, 6, 9);
  take(next, 5, 3);
  DataLeases other = testing::BeginLeases(testing::LayoutOf(dataset, {100, 66}));
  t("other data", absl::StatusCodeToString(other.Resume(position).code()));
  EXPECT_EQ(t.text, R"(
worker 0 takes 3: epoch 0 lease 0 batches 0+3
worker 1 takes 1: epoch 0 lease 1 batches 0+1
worker 0 takes 2: epoch 0 lease 0 batches 3+1, epoch 0 lease 1 batches 1+1
position: epoch 0, next lease 2, begun 1 at 2
worker 5 takes 4: epoch 0 lease 1 batches 2+1, epoch 0 lease 2 batches 0+3
worker 6 takes 9: epoch 0 lease 3 batches 0+4, epoch 0 lease 4 batches 0+2, epoch 0 lease 2 batches 3+1, epoch 1 lease 0 batches 0+2
worker 5 takes 3: epoch 1 lease 1 batches 0+3
other data: INVALID_ARGUMENT
)");
}

}  // namespace
}  // namespace mu
