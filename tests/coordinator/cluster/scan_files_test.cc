// Files that workers look through: what they are sent for it.
#include <gmock/gmock.h>

#include "absl/strings/str_cat.h"
#include "tests/coordinator/cluster/played_worker.h"

namespace mu {
namespace {

class ScanFilesTest : public testing::PlayedClusterTest {
 protected:
  // More files than a worker is given at once.
  static constexpr int kFiles = 40;

  // Looks through all of them, and checks that each is found once.
  void Scan() {
    pb::DatasetProto dataset;
    dataset.set_id(3);
    dataset.set_block_records(10);
    std::vector<size_t> files;
    for (int i = 0; i < kFiles; ++i) {
      dataset.add_files(absl::StrCat("/data/", i));
      files.push_back(static_cast<size_t>(i));
    }
    std::vector<size_t> found;
    MU_EXPECT_OK(runtime_->ScanFiles(
        dataset, files, [&](size_t file, const pb::ScanFileReply&) { found.push_back(file); }));
    EXPECT_THAT(found, ::testing::UnorderedElementsAreArray(files));
  }
};

TEST_F(ScanFilesTest, AWorkerIsSentTheDatasetOnce) {
  Start();
  auto worker = Worker(11, 0);
  Scan();
  EXPECT_EQ(worker->datasets_installed, 1);
  Scan();
  EXPECT_EQ(worker->datasets_installed, 2) << "another scan knows nothing of it";
}

TEST_F(ScanFilesTest, EachWorkerIsSentTheDatasetOnce) {
  Start();
  auto first = Worker(11, 0), second = Worker(12, 1);
  Scan();
  EXPECT_EQ(first->datasets_installed, 1);
  EXPECT_EQ(second->datasets_installed, 1);
}

TEST_F(ScanFilesTest, AWorkerThatLacksTheDatasetIsSentItAgain) {
  Start();
  auto worker = Worker(11, 0);
  std::atomic<int> installed_before{-1};
  worker->scanning = [&](uint32_t file) {
    if (file != 20 || installed_before >= 0) return absl::OkStatus();
    installed_before = worker->datasets_installed.load();
    return WithKind(absl::FailedPreconditionError("dataset 3 is not installed"),
                    pb::ERROR_NOT_INSTALLED, pb::ROLE_WORKER);
  };
  Scan();
  EXPECT_EQ(installed_before, 1);
  EXPECT_GT(worker->datasets_installed, 1);
}

}  // namespace
}  // namespace mu
