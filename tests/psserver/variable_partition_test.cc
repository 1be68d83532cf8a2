// Who may be in a partition of a variable at the same time.
#include "psserver/store/variable_partition.h"

#include <gmock/gmock.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include "psserver/store/store.h"
#include "tests/psserver/model.h"
#include "tests/testing/matchers.h"
#include "tests/testing/wait.h"

namespace mu {
namespace {

using ::testing::Each;

constexpr size_t kRows = 64, kColumns = 16;
constexpr size_t kBytes = kRows * kColumns * sizeof(float);

// Memory of kBytes. Whoever writes there first stands still until Open(), or for ten seconds.
class SlowMemory {
 public:
  SlowMemory() {
    memory_ = ::mmap(nullptr, kBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    MU_CHECK(memory_ != MAP_FAILED && ::pipe(touched_) == 0 && ::pipe(open_) == 0);
    instance_ = this;
    struct sigaction action = {};
    action.sa_sigaction = OnFault;
    action.sa_flags = SA_SIGINFO;
    MU_CHECK(::sigaction(SIGSEGV, &action, &before_) == 0);
  }
  ~SlowMemory() {
    ::sigaction(SIGSEGV, &before_, nullptr);
    ::munmap(memory_, kBytes);
    for (const int fd : {touched_[0], touched_[1], open_[0], open_[1]}) ::close(fd);
  }
  float* data() { return static_cast<float*>(memory_); }
  bool AwaitTouch() { return Await(touched_[0]); }
  void Open() { MU_CHECK(::write(open_[1], "o", 1) == 1); }
  // Whether Open() came in time.
  bool opened() const { return opened_; }

 private:
  static bool Await(int fd) {
    pollfd wait = {fd, POLLIN, 0};
    return ::poll(&wait, 1, 10'000) == 1;
  }
  static void OnFault(int, siginfo_t* info, void*) {
    SlowMemory& memory = *instance_;
    const auto* const at = static_cast<const char*>(info->si_addr);
    const auto* const begin = static_cast<const char*>(memory.memory_);
    if (at < begin || at >= begin + kBytes) {
      ::signal(SIGSEGV, SIG_DFL);  // another fault: it comes again
      return;
    }
    [[maybe_unused]] const ssize_t ignored = ::write(memory.touched_[1], "t", 1);
    memory.opened_ = Await(memory.open_[0]);
    ::mprotect(memory.memory_, kBytes, PROT_READ | PROT_WRITE);
  }

  static SlowMemory* instance_;
  void* memory_;
  int touched_[2], open_[2];
  std::atomic<bool> opened_{false};
  struct sigaction before_ = {};
};
SlowMemory* SlowMemory::instance_ = nullptr;

class VariablePartitionTest : public ::testing::Test {
 protected:
  void SetUp() override {
    pb::RoutingProto routing;
    routing.set_version(1);
    routing.add_servers()->set_index(0);
    pb::VariableProto* const variable = routing.add_variables();
    variable->set_name("matrix");
    variable->set_dtype(pb::FLOAT32);
    for (const size_t dim : {kRows, kColumns})
      variable->mutable_shape()->add_dims(static_cast<int64_t>(dim));
    variable->mutable_initializer()->mutable_constant()->set_value(2);
    MU_ASSERT_OK(PlaceAll(&routing));
    MU_ASSERT_OK(store_.Configure(routing, 0));
    directory_ = store_.directory();
    partition_ = directory_->variable(0)->partitions[0].get();
  }
  std::vector<float> Values() const {
    std::vector<float> values(kRows * kColumns);
    partition_->Read(values.data());
    return values;
  }
  // The sum of each row.
  std::vector<float> Product() const {
    const std::vector<float> x(kColumns, 1);
    std::vector<float> out(kRows);
    partition_->Multiply(x.data(), 1, /*back=*/false, out.data());
    return out;
  }

  VariablePartition* partition_ = nullptr;

 private:
  Store store_;
  std::shared_ptr<const StoreDirectory> directory_;
};

TEST_F(VariablePartitionTest, ALongReadHoldsUpNoOtherOne) {
  SlowMemory slow;
  CutCopies copies;
  partition_->BeginCut(&copies);
  std::thread reader([&] { partition_->Read(slow.data()); });
  EXPECT_TRUE(slow.AwaitTouch());
  EXPECT_THAT(Product(), Each(2.0f * kColumns));
  EXPECT_THAT(Values(), Each(2.0f));
  EXPECT_EQ(partition_->updates(), 0u);
  EXPECT_EQ(partition_->load().reads, 3u);
  std::vector<float> saved(kRows * kColumns);
  partition_->ReadCut(0, 0, kBytes, saved.data());
  EXPECT_THAT(saved, Each(2.0f));
  slow.Open();
  reader.join();
  EXPECT_TRUE(slow.opened()) << "what came after the first had to wait for it";
  EXPECT_TRUE(std::all_of(slow.data(), slow.data() + kRows * kColumns,
                          [](float value) { return value == 2; }));
  partition_->EndCut();
}

TEST_F(VariablePartitionTest, ALongProductHoldsUpNoOtherOne) {
  SlowMemory slow;
  const std::vector<float> x(kRows * kRows, 1);  // a batch of kRows records
  std::thread reader([&] { partition_->Multiply(x.data(), kRows, /*back=*/true, slow.data()); });
  EXPECT_TRUE(slow.AwaitTouch());
  EXPECT_THAT(Product(), Each(2.0f * kColumns));
  EXPECT_THAT(Values(), Each(2.0f));
  slow.Open();
  reader.join();
  EXPECT_TRUE(slow.opened()) << "what came after the first had to wait for it";
  EXPECT_TRUE(std::all_of(slow.data(), slow.data() + kRows * kColumns,
                          [](float value) { return value == 2.0f * kRows; }));
}

// All elements are equal between updates.
TEST_F(VariablePartitionTest, NobodyReadsHalfAnUpdate) {
  constexpr int kUpdates = 2000;
  std::atomic<bool> done{false};
  std::atomic<uint64_t> reads{0};
  std::vector<std::thread> readers;
  for (int t = 0; t < 3; ++t) {
    readers.emplace_back([&, t] {
      do {
        const std::vector<float> seen = t == 0 ? Product() : Values();
        ++reads;
        EXPECT_TRUE(
            std::all_of(seen.begin(), seen.end(), [&](float value) { return value == seen[0]; }));
      } while (!done);
    });
  }
  EXPECT_TRUE(testing::Eventually([&] { return reads > 0; }));
  const std::vector<float> one(kRows * kColumns, 1);
  for (int i = 0; i < kUpdates; ++i) partition_->AssignAdd(one.data());
  done = true;
  for (std::thread& reader : readers) reader.join();
  EXPECT_THAT(Values(), Each(2.0f + kUpdates));
  EXPECT_EQ(partition_->updates(), uint64_t{kUpdates});
  const PartitionLoad load = partition_->load();
  EXPECT_EQ(load.reads, reads + 1) << "none is lost in counting";
  EXPECT_EQ(load.updates, uint64_t{kUpdates});
  EXPECT_EQ(load.update_bytes, kUpdates * kBytes);
}

}  // namespace
}  // namespace mu
