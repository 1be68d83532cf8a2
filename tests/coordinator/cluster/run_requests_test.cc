#include "coordinator/cluster/run_requests.h"

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

pb::RunRequest Header(SplitMix& random) {
  pb::RunRequest header;
  header.mutable_context()->set_job(random.Next());
  header.set_function(random.Below(1000));
  header.set_steps(static_cast<uint32_t>(random.Below(5)));
  header.set_run(random.Next());
  for (uint64_t i = random.Below(2); i > 0; --i) header.add_args()->set_data("some");
  return header;
}

TEST(RunRequests, AreWhatTheMessageSerializesTo) {
  SplitMix random(1);
  RunRequests requests;
  std::vector<std::shared_ptr<const pb::LeaseProto>> leases;
  for (int i = 0; i < 10; ++i) leases.push_back(Lease(random));
  for (int i = 0; i < 200; ++i) {
    const pb::RunRequest header = Header(random);
    std::vector<BatchRange> batches;
    for (uint64_t k = random.Below(4); k > 0; --k) {
      batches.push_back({leases[random.Below(leases.size())],
                         static_cast<uint32_t>(random.Below(2) * random.Below(100'000)),
                         static_cast<uint32_t>(random.Below(300))});
    }
    const auto upcoming = random.Below(2) == 0 ? nullptr : leases[random.Below(leases.size())];
    pb::RunRequest expected = header;
    for (const BatchRange& range : batches) *expected.add_batches() = ToProto(range);
    if (upcoming != nullptr) *expected.add_upcoming() = *upcoming;
    pb::RunRequest read;
    ASSERT_TRUE(read.ParseFromString(requests.Serialize(header, batches, upcoming)));
    EXPECT_EQ(read.SerializeAsString(), expected.SerializeAsString()) << i;
  }
  EXPECT_EQ(requests.kept(), leases.size());
}

TEST(RunRequests, LeasesThatNobodyHasAnyMoreAreForgotten) {
  SplitMix random(2);
  RunRequests requests;
  const auto in_use = Lease(random);
  for (int i = 0; i < 1000; ++i) {
    requests.Serialize({}, {{in_use, 0, 1}, {Lease(random), 0, 1}}, nullptr);
    EXPECT_LE(requests.kept(), 64u);
  }
}

}  // namespace
}  // namespace mu
