// A job in which nothing can be lost or repeated unseen: every step adds 1 to a counter and the
// squares of its records to a checksum, both on every server.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/rpc/typed.h"
#include "coordinator/training/checkpointer.h"
#include "tests/conformance/conformance.h"
#include "tests/conformance/numbers_file.h"

namespace mu::testing {

class CheckedJob {
 public:
  struct Size {
    int64_t records = 4000;
    int64_t batch = 4;
    uint32_t epochs = 1;
    // None: which records are used is anybody's guess
    pb::Visitation visitation = pb::VISITATION_EXACTLY_ONCE;
    const char* file = "checked.csv";  // packed as its ending says
    uint64_t steps() const { return epochs * static_cast<uint64_t>(records / batch); }
  };

  static absl::StatusOr<CheckedJob> Create(TestCluster& cluster, Size size) {
    return Create(cluster.coordinator(), cluster.directory(), size);
  }
  static absl::StatusOr<CheckedJob> Create(Coordinator& coordinator, const std::string& directory,
                                           Size size) {
    CheckedJob job;
    job.c_ = &coordinator;
    job.size_ = size;
    const std::string file = absl::StrCat(directory, "/", size.file);
    WriteFile(file, Numbers(0, size.records));
    MU_ASSIGN_OR_RETURN(const Dataset data,
                        job.c_->CreateDataset(Csv({file})
                                                  .Id("id", 0, 0)
                                                  .Batch(static_cast<uint32_t>(size.batch))
                                                  .Shuffle(500)
                                                  .Epochs(size.epochs)
                                                  .Visitation(size.visitation)));
    for (auto [variable, name] :
         {std::pair{&job.counters_, "counters"}, std::pair{&job.checksums_, "checksums"}}) {
      MU_ASSIGN_OR_RETURN(*variable,
                          job.c_->CreateVariable({.name = name,
                                                  .shape = Shape({kPartitions}),
                                                  .dtype = kInt64,
                                                  .partitioner = FixedShards{kPartitions}}));
    }
    const Tensor ones =
        Tensor::Of<int64_t>(Shape({kPartitions}), std::vector<int64_t>(kPartitions, 1));
    MU_ASSIGN_OR_RETURN(job.step_, job.c_->DefineFunction("checked_step", [&](FunctionBuilder& f) {
      const Sym id = f.NextBatch(data)["id"];
      AssignAdd(job.counters_, ConstantTensor(ones));
      AssignAdd(job.checksums_, ConstantTensor(ones) * ReduceSum(id * id));
      f.Return("records", Count(id));
    }));
    return job;
  }

  void ScheduleAll(uint32_t steps_per_function) const {
    for (uint64_t first = 0; first < size_.steps(); first += steps_per_function) {
      c_->Schedule(step_, {.steps = steps_per_function});
    }
  }

  // Waits until `steps` have been done, or all are.
  void WaitForSteps(uint64_t steps) const {
    for (uint64_t seen = c_->Stats().steps; seen < steps; seen = c_->Stats().steps) {
      bool over = false;
      WaitWhile([&] {
        if (c_->Stats().steps > seen) return false;
        const absl::StatusOr<bool> done = c_->Done();
        over = !done.ok() || *done;
        return !over;
      });
      if (over || c_->Stats().steps == seen) return;
    }
  }

  // Joins, then counts.
  void JoinAndCheck() const {
    MU_ASSERT_OK(c_->Join());
    EXPECT_EQ(c_->Stats().steps, size_.steps()) << "each result is delivered once";
    MU_ASSERT_OK_AND_ASSIGN(const Tensor counted, c_->Read(counters_));
    EXPECT_THAT(counted.flat<int64_t>(), ::testing::Each(static_cast<int64_t>(size_.steps())));
    if (size_.visitation == pb::VISITATION_NONE) return;
    int64_t squares = 0;
    for (int64_t i = 0; i < size_.records; ++i) squares += i * i;
    MU_ASSERT_OK_AND_ASSIGN(const Tensor summed, c_->Read(checksums_));
    EXPECT_THAT(summed.flat<int64_t>(),
                ::testing::Each(squares * static_cast<int64_t>(size_.epochs)));
  }

  const Function& step() const { return step_; }

 private:
  static constexpr int kPartitions = 12;  // spread over all servers

  Coordinator* c_ = nullptr;
  Size size_;
  Variable counters_, checksums_;
  Function step_;
};

// How many pushes the servers have seen a second time.
inline uint64_t RepeatedPushes(Coordinator& c) {
  uint64_t repeated = 0;
  for (const Member& server : c.runtime().Servers()) {
    pb::PsStatsRequest request;
    *request.mutable_context() = c.runtime().Context();
    const auto status = Call<pb::PsStatsReply>(*c.runtime().ChannelTo(server.address),
                                               "/muster.PsServer/GetStats", request);
    EXPECT_THAT(status, IsOk());
    if (status.ok()) repeated += status->repeated_pushes();
  }
  return repeated;
}

// The kinds of the losses of this role so far, in order.
inline std::vector<std::string> Losses(const Coordinator& c, pb::Role role) {
  std::vector<std::string> kinds;
  for (const MemberFailure& failure : c.Stats().failures) {
    if (failure.role == role) kinds.push_back(failure.kind);
  }
  return kinds;
}

// What `coordinator status` says of a worker; nothing while it is no member.
inline std::optional<pb::MemberStatus> StatusOfWorker(Coordinator& c, int worker) {
  const pb::GetStatusReply status = c.runtime().Status();
  for (const pb::MemberStatus& member : status.members()) {
    if (member.role() == pb::ROLE_WORKER && member.index() == static_cast<uint32_t>(worker))
      return member;
  }
  return std::nullopt;
}
inline std::string StateOf(Coordinator& c, int worker) {
  const auto status = StatusOfWorker(c, worker);
  return status.has_value() ? status->state() : "";
}
// Functions that it has.
inline uint32_t InFlight(Coordinator& c, int worker) {
  const auto status = StatusOfWorker(c, worker);
  return status.has_value() ? status->in_flight() : 0;
}

// Checkpoints are taken when the test says so, and all are kept.
inline CheckpointerOptions OnRequest(const std::string& directory) {
  return {.directory = directory, .every = absl::InfiniteDuration(), .keep = 0};
}

// Steps by worker, as `coordinator status` shows them.
inline std::map<uint32_t, uint64_t> StepsByWorker(Coordinator& c) {
  std::map<uint32_t, uint64_t> steps;
  const pb::GetStatusReply status = c.runtime().Status();
  for (const auto& member : status.members()) {
    if (member.role() == pb::ROLE_WORKER) steps[member.index()] = member.steps();
  }
  return steps;
}

inline void WaitForWorkers(const Coordinator& c, size_t count) {
  WaitWhile([&] { return c.Stats().workers_ready != count; });
}

}  // namespace mu::testing
