#include "coordinator/cluster/run_requests.h"

#include <map>

#include "common/base/error_kind.h"
#include "common/base/hash.h"
#include "tests/testing/matchers.h"

namespace mu {
namespace {

std::shared_ptr<const pb::LeaseProto> Lease(SplitMix& random) {
  auto lease = std::make_shared<pb::LeaseProto>();
  lease->set_dataset(1 + random.Below(3));
  lease->set_index(random.Below(1 << 20));
  lease->set_permutation(random.Next());
  for (uint64_t i = random.Below(300); i > 0; --i) {
    pb::BlockProto& block = *lease->add_blocks();
    block.set_file(static_cast<uint32_t>(random.Below(5)));
    block.set_first(random.Next() >> random.Below(64));
    block.set_count(static_cast<uint32_t>(random.Below(70'000)));
  }
  return lease;
}

RunRequests::Run RandomRun(SplitMix& random) {
  RunRequests::Run run;
  run.start = {FunctionId(random.Next()), RunId(random.Next()), WorkerId(3),
               static_cast<uint32_t>(random.Below(5)), static_cast<uint32_t>(random.Below(9))};
  run.context.set_job(random.Next());
  run.context.set_generation(random.Next());
  run.fingerprint = Fingerprint(random.Next());
  run.step_offset = random.Next();
  run.draw_offset = random.Next();
  run.view = ViewId(random.Next());
  if (random.Below(2) == 0) {
    auto args = std::make_shared<std::vector<pb::TensorProto>>(2);
    (*args)[1].set_data("some");
    run.args = std::move(args);
  }
  return run;
}

// What a worker makes of the parts.
class Reader {
 public:
  pb::RunRequest Read(const std::string& part) {
    pb::FeedRequest request;
    EXPECT_TRUE(request.ParseFromString(part));
    EXPECT_EQ(request.runs_size(), 1);
    for (const pb::FeedLease& lease : request.leases()) {
      EXPECT_TRUE(leases.emplace(lease.id(), lease.lease().SerializeAsString()).second)
          << "each is brought once";
    }
    pb::RunRequest run = request.runs(0);
    for (const pb::RunBatches& batches : run.batches())
      EXPECT_TRUE(leases.contains(batches.lease()));
    for (const uint64_t lease : run.upcoming()) EXPECT_TRUE(leases.contains(lease));
    for (const uint64_t lease : request.forgotten_leases()) EXPECT_EQ(leases.erase(lease), 1u);
    return run;
  }
  std::map<uint64_t, std::string> leases;
};

TEST(RunRequests, SayWhatTheRunIs) {
  SplitMix random(1);
  RunRequests requests;
  Reader reader;
  std::vector<std::shared_ptr<const pb::LeaseProto>> leases;
  for (int i = 0; i < 10; ++i) leases.push_back(Lease(random));
  for (int i = 0; i < 200; ++i) {
    RunRequests::Run run = RandomRun(random);
    for (uint64_t k = random.Below(4); k > 0; --k) {
      run.batches.push_back({leases[random.Below(leases.size())],
                             static_cast<uint32_t>(random.Below(2) * random.Below(100'000)),
                             static_cast<uint32_t>(random.Below(300))});
    }
    if (random.Below(2) == 0) run.upcoming = leases[random.Below(leases.size())];
    std::string part;
    requests.Append(run, &part);
    const pb::RunRequest read = reader.Read(part);
    EXPECT_EQ(read.context().SerializeAsString(), run.context.SerializeAsString());
    EXPECT_EQ(read.function(), run.start.function.value());
    EXPECT_EQ(read.fingerprint(), run.fingerprint.value());
    EXPECT_EQ(read.first_step(), run.start.first_step);
    EXPECT_EQ(read.steps(), run.start.steps);
    EXPECT_EQ(read.run(), run.start.run.value());
    EXPECT_EQ(read.step_offset(), run.step_offset);
    EXPECT_EQ(read.draw_offset(), run.draw_offset);
    EXPECT_EQ(read.view(), run.view.value());
    EXPECT_EQ(read.args_size(), run.args == nullptr ? 0 : 2);
    ASSERT_EQ(read.batches_size(), static_cast<int>(run.batches.size()));
    for (int b = 0; b < read.batches_size(); ++b) {
      const BatchRange& range = run.batches[static_cast<size_t>(b)];
      EXPECT_EQ(reader.leases[read.batches(b).lease()], range.lease->SerializeAsString());
      EXPECT_EQ(read.batches(b).first_batch(), range.first_batch);
      EXPECT_EQ(read.batches(b).batches(), range.batches);
    }
    ASSERT_EQ(read.upcoming_size(), run.upcoming == nullptr ? 0 : 1);
    if (run.upcoming != nullptr) {
      EXPECT_EQ(reader.leases[read.upcoming(0)], run.upcoming->SerializeAsString());
    }
  }
  EXPECT_EQ(requests.kept(), leases.size());
}

// The least limit that a run is taken with.
uint64_t LeastLimit(const RunRequests::Run& run) {
  uint64_t refused = 0, taken = uint64_t{1} << 30;
  while (taken - refused > 1) {
    const uint64_t middle = (refused + taken) / 2;
    (RunRequests::CheckSize(run, middle).ok() ? taken : refused) = middle;
  }
  return taken;
}

TEST(RunRequests, WhatIsTakenIsNoLargerThanTheLimit) {
  SplitMix random(3);
  for (int i = 0; i < 200; ++i) {
    RunRequests::Run run = RandomRun(random);
    for (uint64_t k = random.Below(4); k > 0; --k)
      run.batches.push_back({Lease(random), static_cast<uint32_t>(random.Next()),
                             static_cast<uint32_t>(random.Next())});
    if (random.Below(2) == 0 && !run.batches.empty()) run.batches.push_back(run.batches[0]);
    if (random.Below(2) == 0) run.upcoming = Lease(random);
    if (random.Below(2) == 0) {
      auto args = std::make_shared<std::vector<pb::TensorProto>>(1);
      (*args)[0].set_data(std::string(random.Below(10'000), 'x'));
      run.args = std::move(args);
    }
    std::string part;
    RunRequests().Append(run, &part);
    const uint64_t limit = LeastLimit(run);
    EXPECT_GE(limit, part.size());
    EXPECT_LE(limit, part.size() + 2'000) << "and it is not refused without need";
  }
}

TEST(RunRequests, ARunThatIsTooLargeIsTheUsersError) {
  RunRequests::Run run;
  auto args = std::make_shared<std::vector<pb::TensorProto>>(1);
  (*args)[0].set_data(std::string(20'000, 'x'));
  run.args = std::move(args);
  const absl::Status status = RunRequests::CheckSize(run, 20'000);
  EXPECT_THAT(status, testing::StatusIs(absl::StatusCode::kInvalidArgument,
                                        ::testing::HasSubstr("20000 at most")));
  EXPECT_EQ(KindOf(status), pb::ERROR_USER);
}

TEST(RunRequests, LeasesThatNobodyHasAnyMoreAreForgotten) {
  SplitMix random(2);
  RunRequests requests;
  Reader reader;
  const auto in_use = Lease(random);
  for (int i = 0; i < 1000; ++i) {
    RunRequests::Run run;
    run.batches = {{in_use, 0, 1}, {Lease(random), 0, 1}};
    std::string part;
    requests.Append(run, &part);
    reader.Read(part);
    EXPECT_LE(requests.kept(), 65u);
    EXPECT_EQ(requests.kept(), reader.leases.size()) << "the worker forgets the same";
  }
}

}  // namespace
}  // namespace mu
