// Disks that are full, directories that cannot be written, files that are damaged: said by name,
// and nothing is lost.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <vector>

#include "common/env/file.h"
#include "tests/psserver/cluster.h"
#include "tests/testing/matchers.h"

namespace mu {
namespace {

using ::mu::testing::HasCode;
using ::mu::testing::PsCluster;
using ::mu::testing::StatusIs;
using ::testing::HasSubstr;
using Files = std::vector<pb::CheckpointFileProto>;

class FileFaultsTest : public ::testing::Test {
 protected:
  FileFaultsTest() : cluster_(2) {
    auto directory = TempDirectory::Create("muster_file_faults_test");
    MU_CHECK(directory.ok());
    directory_ = std::make_unique<TempDirectory>(*std::move(directory));
    MU_CHECK(cluster_.Configure().ok());
    Push(0);
  }

  // Counts in "steps" and touches a row on each server.
  void Push(uint32_t step) {
    PsSession session = cluster_.Session(1);
    session.BeginStep(step);
    const int64_t one = 1;
    const std::vector<int64_t> ids = {1, 2, 3, 4, 5, 6, 7, 8};
    const std::vector<float> gradients(ids.size() * 4, -2);
    const VariableWrite write{2, VariableWrite::kAssignAdd, &one};
    const RowsWrite rows{101, ids, gradients.data()};
    MU_ASSERT_OK(session.Push({&write, 1}, {&rows, 1}));
  }
  int64_t Steps() {
    const auto steps = cluster_.admin().ReadVariable(cluster_.context(), "steps");
    EXPECT_THAT(steps, testing::IsOk());
    return steps.ok() ? *steps->data<int64_t>() : -1;
  }
  const std::string& path() const { return directory_->path(); }

  // After a failed save the servers go on, and `good` still restores the first step.
  void ExpectGoesOn(const std::string& good, const Files& files) {
    Push(1);
    EXPECT_EQ(Steps(), 2);
    cluster_.context().set_generation(2);
    MU_ASSERT_OK(cluster_.admin().Restore(cluster_.context(), good, files));
    EXPECT_EQ(Steps(), 1);
    MU_EXPECT_OK(cluster_.admin().Save(cluster_.context(), JoinPath(path(), "later")));
  }

  std::unique_ptr<TempDirectory> directory_;
  PsCluster cluster_;
};

TEST_F(FileFaultsTest, DiskFullOnSave) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root, to mount a small disk";
  const std::string disk = JoinPath(path(), "disk");
  MU_ASSERT_OK(MakeDirectories(disk));
  if (mount("tmpfs", disk.c_str(), "tmpfs", 0, "size=1m") != 0)
    GTEST_SKIP() << "cannot mount a tmpfs here";
  MU_ASSERT_OK_AND_ASSIGN(const Files files,
                          cluster_.admin().Save(cluster_.context(), JoinPath(path(), "good")));
  const std::string full = JoinPath(disk, "full");
  const auto failed = cluster_.admin().Save(cluster_.context(), full);
  EXPECT_THAT(failed, StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr(full)));
  EXPECT_EQ(KindOf(failed.status()), pb::ERROR_MACHINE);
  ExpectGoesOn(JoinPath(path(), "good"), files);
  const auto left = ListDirectory(full);
  EXPECT_TRUE(!left.ok() || left->size() < 2) << "nothing half is left to fill the disk further";
  EXPECT_EQ(umount(disk.c_str()), 0);
}

TEST_F(FileFaultsTest, UnwritableDirectory) {
  MU_ASSERT_OK_AND_ASSIGN(const Files files,
                          cluster_.admin().Save(cluster_.context(), JoinPath(path(), "good")));
  const std::string locked = JoinPath(path(), "locked");
  MU_ASSERT_OK(MakeDirectories(locked));
  const bool root = geteuid() == 0;
  if (root) {
    // Only a disk that takes nothing stops root.
    if (mount("tmpfs", locked.c_str(), "tmpfs", MS_RDONLY, "size=1m") != 0)
      GTEST_SKIP() << "cannot mount a tmpfs here";
  } else {
    ASSERT_EQ(chmod(locked.c_str(), 0555), 0);
  }
  const auto failed = cluster_.admin().Save(cluster_.context(), locked);
  EXPECT_FALSE(failed.ok());
  EXPECT_THAT(std::string(failed.status().message()), HasSubstr(locked));
  ExpectGoesOn(JoinPath(path(), "good"), files);
  // Not before: the error of one server does not wait for the other one, which may still be trying.
  // Its next save has waited for that.
  if (root) {
    EXPECT_EQ(umount(locked.c_str()), 0);
  }
}

// What is done to a file, and what the restore then says.
struct Damage {
  const char* name;
  absl::StatusCode code;
  absl::Status (*inflict)(const std::string& path);
};

class DamagedFileTest : public FileFaultsTest, public ::testing::WithParamInterface<Damage> {};

TEST_P(DamagedFileTest, IsRefusedByNameAndTheEarlierCheckpointIsUsed) {
  MU_ASSERT_OK_AND_ASSIGN(const Files good,
                          cluster_.admin().Save(cluster_.context(), JoinPath(path(), "1")));
  Push(1);
  MU_ASSERT_OK_AND_ASSIGN(const Files bad,
                          cluster_.admin().Save(cluster_.context(), JoinPath(path(), "2")));
  for (size_t file = 0; file < bad.size(); ++file) {
    MU_ASSERT_OK_AND_ASSIGN(const std::string bytes,
                            ReadFile(JoinPath(JoinPath(path(), "2"), bad[file].name())));
    MU_ASSERT_OK(GetParam().inflict(JoinPath(JoinPath(path(), "2"), bad[file].name())));
    // On servers that have a state, and on new ones.
    PsCluster fresh(2);
    MU_ASSERT_OK(fresh.Configure());
    for (PsCluster* cluster : {&cluster_, &fresh}) {
      const uint64_t generation = cluster->context().generation();
      cluster->context().set_generation(generation + 1);
      EXPECT_THAT(cluster->admin().Restore(cluster->context(), JoinPath(path(), "2"), bad),
                  StatusIs(GetParam().code, HasSubstr(bad[file].name())));
      cluster->context().set_generation(generation + 2);
      MU_ASSERT_OK(cluster->admin().Restore(cluster->context(), JoinPath(path(), "1"), good));
    }
    EXPECT_EQ(Steps(), 1);
    MU_ASSERT_OK(WriteFileAtomic(JoinPath(JoinPath(path(), "2"), bad[file].name()), bytes));
  }
}

absl::Status Rewrite(const std::string& path, void (*change)(std::string*)) {
  auto bytes = ReadFile(path);
  if (!bytes.ok()) return bytes.status();
  change(&*bytes);
  return WriteFileAtomic(path, *bytes);
}

const Damage kDamages[] = {
    {"TornShard", absl::StatusCode::kDataLoss,
     [](const std::string& path) {
       return Rewrite(path, [](std::string* bytes) { bytes->resize(bytes->size() / 2); });
     }},
    {"EmptyShard", absl::StatusCode::kDataLoss,
     [](const std::string& path) { return WriteFileAtomic(path, ""); }},
    {"FlippedBit", absl::StatusCode::kDataLoss,
     [](const std::string& path) {
       return Rewrite(path, [](std::string* bytes) { (*bytes)[bytes->size() - 9] ^= 8; });
     }},
    {"FlippedBitInTheHeader", absl::StatusCode::kDataLoss,
     [](const std::string& path) {
       return Rewrite(path,
                      [](std::string* bytes) { (*bytes)[bytes->find("variables/") + 2] ^= 1; });
     }},
    {"FlippedBitInTheHeadersLength", absl::StatusCode::kDataLoss,
     [](const std::string& path) {
       return Rewrite(path, [](std::string* bytes) { (*bytes)[1] ^= 1; });
     }},
    {"MissingShard", absl::StatusCode::kFailedPrecondition,
     [](const std::string& path) { return RemoveFile(path); }},
};

INSTANTIATE_TEST_SUITE_P(Damages, DamagedFileTest, ::testing::ValuesIn(kDamages),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace mu
