#include "worker/data/file_cache.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <functional>
#include <thread>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/strip.h"
#include "common/base/error_kind.h"
#include "tests/testing/wait.h"
#include "tests/worker/data/data_test_util.h"
#include "worker/data/data_file.h"
#include "worker/data/file_index.h"

namespace mu {
namespace {

using ::mu::testing::HasCode;
using ::mu::testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

class Counter final : public ChunkSink {
 public:
  absl::Status Write(absl::string_view chunk) override {
    bytes += chunk.size();
    return absl::OkStatus();
  }
  size_t bytes = 0;
};

// Removes something after the first chunk.
class Cleaner final : public ChunkSink {
 public:
  explicit Cleaner(std::function<void()> clean) : clean_(std::move(clean)) {}
  absl::Status Write(absl::string_view chunk) override {
    if (bytes == 0) clean_();
    bytes += chunk.size();
    return absl::OkStatus();
  }
  size_t bytes = 0;

 private:
  const std::function<void()> clean_;
};

// How often this process has the file open.
int TimesOpen(const std::string& path) {
  int times = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    times += std::filesystem::equivalent(entry.path(), path, gone) ? 1 : 0;
  }
  return times;
}

class FileCacheTest : public DataTest {
 protected:
  static std::string ReadFd(int fd) {
    std::string text(200'000, 0);
    const ssize_t n = pread(fd, text.data(), text.size(), 0);
    text.resize(n < 0 ? 0 : static_cast<size_t>(n));
    return text;
  }
  // Whether it had to be unpacked.
  static bool Use(FileCache* cache, const std::string& path, const std::string& contents) {
    Counter counter;
    bool fed = false;
    const absl::StatusOr<UniqueFd> fd =
        cache->Open(path, GetFileInfo(path).value(), &counter, &fed);
    EXPECT_THAT(fd, testing::IsOk());
    if (!fd.ok()) return false;
    EXPECT_TRUE(ReadFd(fd->get()) == contents);
    EXPECT_EQ(counter.bytes, fed ? contents.size() : 0);
    return fed;
  }
  static UniqueFd Locked(const std::string& lock) {
    UniqueFd fd(open(lock.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
    EXPECT_EQ(flock(fd.get(), LOCK_EX), 0) << lock;
    return fd;
  }
  // Somebody else who unpacks this file, as far as the cache sees him.
  struct Unfinished {
    UniqueFd lock;
    std::string copy;
  };
  Unfinished Begin(const std::string& path) {
    EXPECT_TRUE(Use(cache_.get(), path, "text"));
    Unfinished begun;
    for (const std::string& name : Names()) {
      if (!absl::EndsWith(name, ".unpacked")) continue;
      const std::string copy = JoinPath(Path("cache"), name);
      MU_EXPECT_OK(RemoveFile(copy));
      begun.lock = Locked(copy + ".lock");
      begun.copy = copy + ".tmp.1.0";
    }
    return begun;
  }
  std::vector<std::string> Names() const {
    return ListDirectory(Path("cache")).value_or(std::vector<std::string>());
  }
  uint64_t CopiedBytes() const {
    uint64_t bytes = 0;
    for (const std::string& name : Names()) {
      if (!absl::EndsWith(name, ".lock")) bytes += FileSize(JoinPath(Path("cache"), name)).value();
    }
    return bytes;
  }
};

TEST_F(FileCacheTest, UnpacksOnce) {
  const std::string text(100'000, 'x');
  const std::string path = Write("f.gz", text);
  EXPECT_TRUE(Use(cache_.get(), path, text));
  EXPECT_FALSE(Use(cache_.get(), path, text));
}

TEST_F(FileCacheTest, IsSharedByTwo) {
  const std::string path = Write("f.gz", "text");
  auto other = std::make_shared<FileCache>(Path("cache"), 1 << 20);
  EXPECT_TRUE(Use(cache_.get(), path, "text"));
  EXPECT_FALSE(Use(other.get(), path, "text"));
  EXPECT_TRUE(Use(other.get(), Write("g.gz", "more"), "more"));
  cache_.reset();  // the first user leaves, the other's copies stay
  EXPECT_FALSE(Use(other.get(), path, "text"));
  other.reset();
  EXPECT_FALSE(FileExists(Path("cache")));
}

TEST_F(FileCacheTest, IsSharedByTwoReaders) {
  pb::DatasetProto dataset;
  AddColumn(&dataset, "id", pb::CsvColumnProto::ID, 0);
  dataset.set_batch_size(10);
  dataset.add_files(Write("f.csv.gz", "1\n2\n3\n"));
  auto other = std::make_shared<FileCache>(Path("cache"), 1 << 20);
  const auto first = Reader(dataset);
  const auto second = *DatasetReader::Create(dataset, other);
  for (const auto& reader : {first, second}) {
    MU_ASSERT_OK_AND_ASSIGN(const auto data, ReadFileWhole(reader.get()));
    EXPECT_EQ(Values<int64_t>(data->MakeBatch(0), "id"), (std::vector<int64_t>{1, 2, 3}));
  }
}

TEST_F(FileCacheTest, RemovesWhatAKilledOneLeft) {
  const std::string path = Write("f.gz", "text");
  EXPECT_TRUE(Use(cache_.get(), path, "text"));
  for (const std::string& name : Names()) {
    if (!absl::EndsWith(name, ".unpacked")) continue;
    const std::string copy = JoinPath(Path("cache"), name);
    MU_ASSERT_OK(WriteFileAtomic(absl::StrCat(copy, ".tmp.1.0"), "te"));
    MU_ASSERT_OK(RemoveFile(copy));
  }
  const auto unfinished = [&] {
    const std::vector<std::string> names = Names();
    return std::count_if(names.begin(), names.end(),
                         [](const std::string& name) { return absl::StrContains(name, ".tmp."); });
  };
  EXPECT_EQ(unfinished(), 1);
  EXPECT_TRUE(Use(cache_.get(), path, "text"));
  EXPECT_EQ(unfinished(), 0);
}

// As one that was stopped, or whose disk hangs.
TEST_F(FileCacheTest, WhoHoldsTheLockAndDoesNothingIsNotWaitedFor) {
  const std::string path = Write("f.gz", "text");
  const Unfinished stopped = Begin(path);
  MU_ASSERT_OK(AppendToFile(stopped.copy, "te"));
  FileCache other(Path("cache"), 1 << 20, absl::Milliseconds(300));
  const uint64_t moves = other.moves();
  EXPECT_TRUE(Use(&other, path, "text"));
  EXPECT_EQ(other.moves(), moves + 1) << "of its own chunk: to wait is no move";
  EXPECT_EQ(ReadFile(stopped.copy).value(), "te") << "it may still go on with it";
  EXPECT_FALSE(Use(cache_.get(), path, "text")) << "nobody else waits";
}

// Containers that share a cache have pids of their own.
TEST_F(FileCacheTest, AnotherOneMayHaveTheSamePid) {
  const std::string path = Write("f.gz", "text");
  const Unfinished stopped = Begin(path);
  const absl::string_view names = absl::StripSuffix(stopped.copy, "1.0");
  const auto name_of = [&](int i) { return absl::StrCat(names, getpid(), ".", i); };
  for (int i = 0; i < 1000; ++i) {
    const UniqueFd made(open(name_of(i).c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
    ASSERT_TRUE(made.valid());
  }
  FileCache other(Path("cache"), 1 << 20, absl::Milliseconds(100));
  EXPECT_TRUE(Use(&other, path, "text"));
  for (int i = 0; i < 1000; ++i) EXPECT_TRUE(FileExists(name_of(i))) << i;
}

TEST_F(FileCacheTest, WhoGetsOnIsWaitedFor) {
  const std::string path = Write("f.gz", "text");
  Unfinished other = Begin(path);
  const uint64_t moves = cache_->moves();
  std::atomic<bool> ended{false};
  std::thread waits([&] {
    EXPECT_TRUE(Use(cache_.get(), path, "text"));
    ended = true;
  });
  EXPECT_TRUE(mu::testing::Eventually([&] {
    MU_EXPECT_OK(AppendToFile(other.copy, "x"));
    return cache_->moves() >= moves + 3;
  })) << "what it waits for gets on";
  EXPECT_FALSE(ended);
  other.lock.Reset();  // it was killed
  waits.join();
  EXPECT_FALSE(FileExists(other.copy));
}

// As if the last user had been stopped while it clears up.
TEST_F(FileCacheTest, WhoClearsUpIsNotWaitedForWithoutEnd) {
  MU_ASSERT_OK(MakeDirectories(Path("cache")));
  UniqueFd last = Locked(Path("cache/.users.unpacked.lock"));
  const std::string path = Write("f.gz", "text");
  auto other = std::make_unique<FileCache>(Path("cache"), 1 << 20, absl::Milliseconds(100));
  EXPECT_TRUE(Use(other.get(), path, "text"));
  EXPECT_FALSE(Use(other.get(), path, "text"));
}

TEST_F(FileCacheTest, KnowsFilesBySizeAndTime) {
  const std::string path = Write("f.gz", "old");
  EXPECT_TRUE(Use(cache_.get(), path, "old"));
  Write("f.gz", "new!");
  EXPECT_TRUE(Use(cache_.get(), path, "new!"));
}

TEST_F(FileCacheTest, MakesRoomByLastUse) {
  FileCache small(Path("cache"), 250'000);
  const std::string text(100'000, 'x');
  const std::string a = Write("a.gz", text), b = Write("b.gz", text), c = Write("c.gz", text);
  const auto age = [&](absl::string_view name,
                       int seconds) {  // as if it had last been used so long ago
    for (const std::string& copy : Names()) {
      if (!absl::StartsWith(copy, name)) continue;
      timespec times[2] = {};
      clock_gettime(CLOCK_REALTIME, &times[0]);
      times[0].tv_sec -= seconds;
      times[1] = times[0];
      ASSERT_EQ(utimensat(AT_FDCWD, JoinPath(Path("cache"), copy).c_str(), times, 0), 0);
    }
  };
  EXPECT_TRUE(Use(&small, a, text));
  EXPECT_TRUE(Use(&small, b, text));
  age("a", 100);
  age("b", 50);
  EXPECT_FALSE(Use(&small, a, text));  // now b is the least recently used
  EXPECT_TRUE(Use(&small, c, text));
  EXPECT_LE(CopiedBytes(), 250'000u);
  EXPECT_FALSE(Use(&small, a, text));
  EXPECT_TRUE(Use(&small, b, text));
  EXPECT_LE(CopiedBytes(), 250'000u);
}

TEST_F(FileCacheTest, AnOpenCopyStaysReadable) {
  const std::string text(100'000, 'x');
  const std::string path = Write("f.gz", text);
  MU_ASSERT_OK_AND_ASSIGN(const UniqueFd fd,
                          cache_->Open(path, GetFileInfo(path).value(), nullptr, nullptr));
  MU_ASSERT_OK(RemoveTree(Path("cache")));
  EXPECT_TRUE(ReadFd(fd.get()) == text);
  EXPECT_TRUE(Use(cache_.get(), path, text));  // and is made again for others
}

// As who cleans /tmp does.
TEST_F(FileCacheTest, AFileIsReadThoughItsCopyIsRemovedWhileItIsMade) {
  const std::string text(2'500'000, 'x');  // several chunks
  const std::string path = Write("f.gz", text);
  for (const bool folder_too : {false, true}) {
    SCOPED_TRACE(folder_too);
    Cleaner cleaner([&] {
      for (const std::string& name : Names()) {
        if (absl::StrContains(name, ".unpacked"))
          MU_EXPECT_OK(RemoveFile(JoinPath(Path("cache"), name)));
      }
      if (folder_too) MU_EXPECT_OK(RemoveTree(Path("cache")));
    });
    bool fed = false;
    MU_ASSERT_OK_AND_ASSIGN(const UniqueFd fd,
                            cache_->Open(path, GetFileInfo(path).value(), &cleaner, &fed));
    EXPECT_TRUE(fed);
    EXPECT_EQ(cleaner.bytes, text.size());
    EXPECT_EQ(SizeOfOpen(fd.get(), path).value(), text.size());
    EXPECT_TRUE(ReadFd(fd.get()) == text.substr(0, 200'000));
  }
  Counter counter;
  for (const bool unpacks : {true, false}) {
    bool fed = false;
    MU_EXPECT_OK(cache_->Open(path, GetFileInfo(path).value(), &counter, &fed).status());
    EXPECT_EQ(fed, unpacks) << "it is made again, once";
  }
}

// Who begins while the last user ends gets the lock on a file that has lost its name.
TEST_F(FileCacheTest, WhoBeginsWhileTheLastOneEndsIsSeenByOthers) {
  const std::string path = Write("f.gz", "text");
  const std::string lock = Path("cache/.users.unpacked.lock");
  MU_ASSERT_OK(MakeDirectories(Path("cache")));
  UniqueFd last = Locked(lock);
  std::thread begins([&] { EXPECT_TRUE(Use(cache_.get(), path, "text")); });
  mu::testing::WaitWhile([&] { return TimesOpen(lock) < 2; });
  MU_ASSERT_OK(RemoveFile(lock));
  last.Reset();
  begins.join();
  EXPECT_TRUE(FileExists(lock));
  auto other = std::make_unique<FileCache>(Path("cache"), 1 << 20);
  EXPECT_FALSE(Use(other.get(), path, "text"));
  other.reset();
  EXPECT_FALSE(Use(cache_.get(), path, "text")) << "the other one was not the last";
}

TEST_F(FileCacheTest, ALockThatIsRemovedIsTakenAgain) {
  const std::string path = Write("f.gz", "text");
  EXPECT_TRUE(Use(cache_.get(), path, "text"));
  MU_ASSERT_OK(RemoveFile(Path("cache/.users.unpacked.lock")));
  EXPECT_FALSE(Use(cache_.get(), path, "text"));
  auto other = std::make_unique<FileCache>(Path("cache"), 1 << 20);
  EXPECT_FALSE(Use(other.get(), path, "text"));
  other.reset();
  EXPECT_FALSE(Use(cache_.get(), path, "text")) << "the other one was not the last";
  // The last one clears up though its lock is gone.
  MU_ASSERT_OK(RemoveFile(Path("cache/.users.unpacked.lock")));
  cache_.reset();
  EXPECT_FALSE(FileExists(Path("cache")));
}

TEST_F(FileCacheTest, RefusesWhatDoesNotFit) {
  const std::string path = Write("f.gz", std::string(100'000, 'x'));
  FileCache small(Path("cache"), 99'999);
  EXPECT_THAT(
      small.Open(path, GetFileInfo(path).value(), nullptr, nullptr).status(),
      StatusIs(absl::StatusCode::kResourceExhausted, AllOf(HasSubstr(path), HasSubstr("99999"))));
  EXPECT_EQ(CopiedBytes(), 0u);
  FileCache enough(Path("cache"), 100'000);
  EXPECT_TRUE(Use(&enough, path, std::string(100'000, 'x')));
}

TEST_F(FileCacheTest, SaysThatItsOwnDirectoryIsAtFault) {
  const std::string path = Write("f.gz", "some text");
  const auto input_of = [&](const std::string& directory) {
    FileCache cache(directory, 1000);
    const absl::Status status =
        cache.Open(path, GetFileInfo(path).value(), nullptr, nullptr).status();
    EXPECT_EQ(KindOf(status), pb::ERROR_MACHINE) << status;
    return InputFaultOf(status).kind();
  };
  EXPECT_EQ(input_of(path + "/below/a/file"), pb::InputFault::DEVICE);
  EXPECT_EQ(input_of("/proc/no/such/place"), pb::InputFault::DEVICE)
      << "though something is missing";
}

TEST_F(FileCacheTest, MakesATornCopyAgain) {
  const std::string path = Write("f.gz", "some text");
  EXPECT_TRUE(Use(cache_.get(), path, "some text"));
  for (const std::string& name : Names()) {
    if (absl::EndsWith(name, ".unpacked")) {
      ASSERT_EQ(truncate(JoinPath(Path("cache"), name).c_str(), 4), 0);
    }
  }
  EXPECT_TRUE(Use(cache_.get(), path, "some text"));
}

TEST_F(FileCacheTest, LeavesNothingOfADamagedFile) {
  const std::string path = Write("f.gz", std::string(1000, 'x'));
  MU_ASSERT_OK_AND_ASSIGN(std::string packed, ReadFile(path));
  packed.resize(packed.size() - 1);
  MU_ASSERT_OK(RemoveFile(path));
  MU_ASSERT_OK(AppendToFile(path, packed));
  EXPECT_THAT(cache_->Open(path, GetFileInfo(path).value(), nullptr, nullptr).status(),
              HasCode(absl::StatusCode::kDataLoss));
  EXPECT_EQ(CopiedBytes(), 0u);
}

TEST_F(FileCacheTest, TouchesNoFilesOfOthers) {
  MU_ASSERT_OK(MakeDirectories(Path("cache")));
  MU_ASSERT_OK(AppendToFile(Path("cache/precious"), "x"));
  EXPECT_TRUE(Use(cache_.get(), Write("f.gz", "text"), "text"));
  cache_.reset();
  MU_ASSERT_OK_AND_ASSIGN(const auto names, ListDirectory(Path("cache")));
  EXPECT_THAT(names, ::testing::ElementsAre("precious"));
}

TEST_F(FileCacheTest, ThreadsAndCachesUnpackAFileOnce) {
  const std::string text(150'000, 'x');
  const std::string path = Write("f.gz", text);
  auto other = std::make_shared<FileCache>(Path("cache"), 1 << 20);
  std::atomic<int> unpacked{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 6; ++t) {
    threads.emplace_back(
        [&, t] { unpacked += Use(t % 2 == 0 ? cache_.get() : other.get(), path, text); });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(unpacked, 1);
}

}  // namespace
}  // namespace mu
