// Random orders of all that happens at a server, around partitions that are lists of pushes: no
// partition has a push twice, what is acknowledged is there, and a cut's memory of pushes is what
// its partitions contain.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/hash.h"
#include "common/base/status.h"
#include "psserver/core/file_memory.h"
#include "psserver/core/server_core.h"
#include "tests/testing/matchers.h"

namespace mu {
namespace {

constexpr uint32_t kPartitions = 4;
constexpr uint64_t kFunctions = 5;  // above the mark
constexpr uint32_t kSteps = 3;

using Partitions = std::array<std::vector<PushId>, kPartitions>;

PartitionKey Key(uint32_t partition) { return {PartitionKey::Kind::kVariable, 0, partition}; }

bool Has(const std::vector<PushId>& pushes, const PushId& push) {
  return std::find(pushes.begin(), pushes.end(), push) != pushes.end();
}

struct File {
  Partitions partitions;
  CutMemory memory;
  uint64_t mark = 0;
  uint64_t number = 0;
};

class Server {
 public:
  explicit Server(uint64_t seed) : random_(seed) {
    context_.set_job(1);
    context_.set_generation(1);
    Renew();
    MU_EXPECT_OK(core_.AdmitConfigure(context_, 0));
    MU_EXPECT_OK(core_.BeginConfigure(context_).status());
    core_.EndConfigure(context_, DefinitionsChange::kAdded);
  }

  void Step() {
    switch (random_.Below(16)) {
      case 0:
        return Cut();
      case 1:
        return BeginRestore();
      case 2:
        return EndRestore();
      case 3:
        return Fence();
      case 4:
        now_ += random_.Below(4) == 0 ? 1000 : 1;  // the lease runs out
        return;
      case 5:
        return Renew();
      case 6:
      case 7:
      case 8:
      case 9:
        return Begin();
      default:
        return Continue();
    }
  }
  // How much of what it is for has happened.
  int acknowledged = 0, repeated = 0, waited = 0, inherited = 0, cuts = 0, restores = 0;
  int was_here = 0;

 private:
  struct Work {
    AdmittedPush push;
    bool entered = false;
  };

  void Renew() { core_.RenewLease(now_, absl::Nanoseconds(500), context_.generation()); }

  void Begin() {
    const PushId id{mark_ + random_.Below(kFunctions), static_cast<uint32_t>(random_.Below(kSteps)),
                    0};
    const auto for_each = [](PushPartitions::Visit visit) {
      for (uint32_t p = 0; p < kPartitions; ++p) visit(Key(p));
    };
    const PsCallId call(++calls_);
    PushBegun begun = core_.BeginPush(now_, context_, id, {kPartitions, for_each}, call);
    switch (begun.step) {
      case PushBegun::Step::kAnswer:
        return Answered(id, begun.answer);
      case PushBegun::Step::kWait:
        ++waited;
        waiting_[call] = id;
        return;
      case PushBegun::Step::kApply:
        inherited += begun.push.inherited != nullptr;
        work_.push_back({std::move(begun.push)});
    }
  }

  // What is admitted enters, what has entered ends.
  void Continue() {
    if (work_.empty()) return;
    Work& work = work_[random_.Below(work_.size())];
    if (work.entered) return End(&work, absl::OkStatus());
    const PushEntered entered = core_.Enter(now_, &work.push);
    ASSERT_NE(entered.step, PushEntered::Step::kWait) << "no cut is being taken";
    if (entered.step != PushEntered::Step::kApply) return End(&work, entered.status);
    work.entered = true;
    for (uint32_t p = 0; p < kPartitions; ++p) {
      if (work.push.IsInherited(Key(p))) continue;
      ASSERT_FALSE(Has(partitions_[p], work.push.id)) << "twice";
      partitions_[p].push_back(work.push.id);
    }
  }

  void End(Work* work, const absl::Status& status) {
    const Work ended = std::move(*work);
    work_.erase(work_.begin() + (work - work_.data()));
    const PushEnded end = core_.EndPush(now_, ended.push, status);
    Answered(ended.push.id, end.answer);
    for (const auto& [call, answer] : end.waiting) {
      ASSERT_EQ(waiting_.count(call), 1u);
      Answered(waiting_[call], answer);
      waiting_.erase(call);
    }
    EXPECT_TRUE(!work_.empty() || waiting_.empty()) << "nobody will answer";
  }

  void Answered(const PushId& id, const PushAnswer& answer) {
    if (!answer.status.ok()) return;
    ++acknowledged;
    repeated += answer.repeated;
    EXPECT_FALSE(restoring_);
    EXPECT_EQ(answer.counts.updates + answer.counts.inherited, kPartitions);
    for (const auto& partition : partitions_) EXPECT_TRUE(Has(partition, id));
  }

  void Cut() {
    if (!core_.AdmitCut(now_, context_).ok()) return;
    ASSERT_TRUE(core_.CloseGate());
    for (Work& work : work_) {
      PushEntered entered = core_.Enter(now_, &work.push);
      EXPECT_EQ(entered.step, PushEntered::Step::kWait);
    }
    while (!core_.CutMayBeTaken()) {
      const auto it =
          std::find_if(work_.begin(), work_.end(), [](const Work& w) { return w.entered; });
      ASSERT_NE(it, work_.end());
      End(&*it, absl::OkStatus());
    }
    File file{partitions_, core_.TakeCut(), core_.pushes().ledger().low_water(), ++cut_};
    core_.OpenGate();
    core_.Leave();
    Check(file);
    ++cuts;
    files_.push_back(std::move(file));
    if (files_.size() > 3) files_.erase(files_.begin());
  }

  void Check(const File& file) {
    AppliedSteps applied;
    for (const auto& range : file.memory.applied) applied.AddRange(range);
    for (uint64_t function = file.mark; function < file.mark + kFunctions; ++function) {
      for (uint32_t step = 0; step < kSteps; ++step) {
        for (uint32_t p = 0; p < kPartitions; ++p) {
          const PushId id{function, step, 0};
          const bool known = applied.Contains(id) || (file.memory.inherited != nullptr &&
                                                      file.memory.inherited->Contains(Key(p), id));
          ASSERT_EQ(known, Has(file.partitions[p], id));
        }
      }
    }
  }

  void Fence() {
    context_.set_low_water(mark_ + random_.Below(2));
    if (!core_.BeginFence(now_, context_).ok()) return;
    mark_ = std::max(mark_, context_.low_water());
    while (!core_.FenceHolds(mark_)) {
      const auto it = std::find_if(work_.begin(), work_.end(),
                                   [&](const Work& work) { return work.push.id.function < mark_; });
      ASSERT_NE(it, work_.end());
      End(&*it, it->entered ? absl::OkStatus() : absl::AbortedError("its check failed"));
    }
    core_.Leave();
  }

  void BeginRestore() {
    if (restoring_) return;
    context_.set_generation(context_.generation() + 1);
    Renew();
    keep_ = random_.Below(3) == 0;
    // The two halves may have been cut at different moments, as files of two servers are.
    const bool again = !keep_ && !loaded_.empty() && random_.Below(3) == 0;
    sources_.clear();
    for (int half = 0; !keep_ && !again && !files_.empty() && half < 2; ++half)
      sources_.push_back(files_[random_.Below(files_.size())]);
    if (again) sources_ = loaded_;
    if (!keep_) loaded_ = sources_;
    if (!keep_) mark_ = 0;
    // Nothing is repeated that one of them has forgotten.
    if (!sources_.empty()) mark_ = std::max(sources_[0].mark, sources_[1].mark);
    context_.set_low_water(mark_);
    std::string content = keep_ ? "keep" : "files";
    for (const File& file : sources_) content += absl::StrCat(" ", file.number);
    const RestoreTurn turn =
        core_.BeginRestore(context_, {keep_, !sources_.empty(), content}, /*verified=*/true);
    is_here_ = turn.step == RestoreTurn::Step::kIsHere;
    ASSERT_TRUE(is_here_ || turn.step == RestoreTurn::Step::kBegun) << turn.status;
    restoring_ = true;
    was_here += is_here_;
  }

  void EndRestore() {
    if (!restoring_) return;
    while (!core_.RestoreMayStart()) {
      ASSERT_FALSE(work_.empty());
      Continue();
    }
    core_.StartRestore();
    InheritedMemory memory;
    const Partitions before = partitions_;
    if (!keep_) partitions_ = {};
    for (uint32_t half = 0; half < sources_.size(); ++half) Load(sources_[half], half, &memory);
    if (is_here_) {
      for (uint32_t p = 0; p < kPartitions; ++p) ASSERT_EQ(partitions_[p].size(), before[p].size());
      memory = {};  // it has that
    }
    MU_EXPECT_OK(core_.EndRestore(pb::RestoreReply(), std::move(memory)));
    restoring_ = false;
    ++restores;
  }

  void Load(const File& file, uint32_t half, InheritedMemory* memory) {
    const WrittenMemory written(&file.memory);
    std::vector<std::vector<AppliedSteps::Range>> memories;
    written.ForEach([&](const auto& steps) { memories.push_back(steps); });
    ReadMemory read(mark_, memory);
    for (uint32_t p = 2 * half; p < 2 * half + 2; ++p) {
      partitions_[p] = file.partitions[p];
      MU_EXPECT_OK(
          read.Inherit(Key(p), written.NumbersOf(Key(p)), [&](int64_t number) -> ReadMemory::Steps {
            return memories[static_cast<size_t>(number)];
          }));
    }
  }

  SplitMix random_;
  ServerCore core_{{.leased = true}};
  pb::RequestContext context_;
  int64_t now_ = 0;
  uint64_t mark_ = 0;
  uint64_t calls_ = 0;
  Partitions partitions_;
  std::vector<Work> work_;
  std::map<PsCallId, PushId> waiting_;
  std::vector<File> files_, sources_;
  std::vector<File> loaded_;  // what the last restore loaded
  uint64_t cut_ = 0;
  bool restoring_ = false, keep_ = false, is_here_ = false;
};

TEST(ServerCoreRandomTest, EveryOrderKeepsThePromises) {
  int acknowledged = 0, repeated = 0, waited = 0, inherited = 0, cuts = 0, restores = 0;
  int was_here = 0;
  for (uint64_t seed = 0; seed < 2000; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    Server server(seed);
    for (int i = 0; i < 200; ++i) {
      server.Step();
      if (::testing::Test::HasFailure()) FAIL() << "step " << i;
    }
    acknowledged += server.acknowledged;
    repeated += server.repeated;
    waited += server.waited;
    inherited += server.inherited;
    cuts += server.cuts;
    restores += server.restores;
    was_here += server.was_here;
  }
  for (const int count : {acknowledged, repeated, waited, inherited, cuts, restores})
    EXPECT_GT(count, 1000);
  EXPECT_GT(was_here, 100);
}

}  // namespace
}  // namespace mu
