// Saving and restoring through the client: other numbers of servers, repeats, damaged files.
#include "psserver/checkpoint/checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/crc32c.h"
#include "common/base/hash.h"
#include "common/checkpoint/safetensors.h"
#include "common/env/file.h"
#include "tests/psserver/cluster.h"
#include "tests/psserver/state.h"
#include "tests/testing/matchers.h"

namespace mu {
namespace {

using ::mu::testing::HasCode;
using ::mu::testing::PsCluster;
using ::mu::testing::StateOf;
using ::mu::testing::StatusIs;
using ::mu::testing::Step;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;
using Files = std::vector<pb::CheckpointFileProto>;

uint64_t RowsOf(PsCluster* cluster) {
  uint64_t rows = 0;
  auto stats = cluster->admin().Stats(cluster->context());
  EXPECT_THAT(stats, testing::IsOk());
  for (const auto& s : *stats) rows += s.rows();
  return rows;
}

class CheckpointTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto directory = MakeTempDirectory("muster_checkpoint_test");
    MU_ASSERT_OK(directory);
    directory_ = *directory;
  }
  void TearDown() override { MU_EXPECT_OK(RemoveTree(directory_)); }
  std::string directory_;
};

TEST_F(CheckpointTest, RestoresOntoAnyNumberOfServers) {
  const std::vector<int64_t> ids = {0, 1, 2, 63, 64, 65, 130, 499, 300};
  for (const auto& [from, to] :
       std::vector<std::pair<uint32_t, uint32_t>>{{2, 3}, {3, 2}, {4, 1}, {1, 1}}) {
    SCOPED_TRACE(::testing::Message() << from << " to " << to);
    PsCluster saved(from);
    MU_ASSERT_OK(saved.Configure());
    Step(&saved, 1, ids);
    Step(&saved, 2, {1, 64, 200});
    const std::string state = StateOf(&saved);
    const std::string directory = JoinPath(directory_, std::to_string(from) + std::to_string(to));
    MU_ASSERT_OK_AND_ASSIGN(const Files files, saved.admin().Save(saved.context(), directory));
    ASSERT_EQ(files.size(), from);

    PsCluster restored(to);
    MU_ASSERT_OK(restored.Configure());
    MU_ASSERT_OK_AND_ASSIGN(const uint64_t rows,
                            restored.admin().Restore(restored.context(), directory, files));
    EXPECT_EQ(rows, 2 * (ids.size() + 1));
    EXPECT_EQ(RowsOf(&restored), rows) << "rows that were never touched are not there";
    EXPECT_TRUE(StateOf(&restored) == state);
    Step(&saved, 3, {1, 5, 499});
    Step(&restored, 3, {1, 5, 499});
    EXPECT_TRUE(StateOf(&restored) == StateOf(&saved)) << "slots went along";
  }
}

// A loss during a recovery begins another round of it, from the same files.
TEST_F(CheckpointTest, ServersThatHaveLoadedFilesDoNotReadThemAgain) {
  PsCluster saved(2), cluster(2);
  MU_ASSERT_OK(saved.Configure());
  Step(&saved, 1, {1, 2, 3});
  const std::string state = StateOf(&saved);
  MU_ASSERT_OK_AND_ASSIGN(const Files files, saved.admin().Save(saved.context(), directory_));
  MU_ASSERT_OK(cluster.Configure());
  MU_ASSERT_OK_AND_ASSIGN(const uint64_t rows,
                          cluster.admin().Restore(cluster.context(), directory_, files));
  MU_ASSERT_OK(RemoveTree(directory_));
  cluster.context().set_generation(2);
  MU_ASSERT_OK(cluster.Configure());
  MU_ASSERT_OK_AND_ASSIGN(const uint64_t again,
                          cluster.admin().Restore(cluster.context(), directory_, files));
  EXPECT_EQ(again, rows);
  EXPECT_TRUE(StateOf(&cluster) == state);
  Step(&cluster, 2, {5});
  cluster.context().set_generation(3);
  EXPECT_FALSE(cluster.impatient_admin().Restore(cluster.context(), directory_, files).ok())
      << "the state has changed, and the files are gone";
  MU_ASSERT_OK(MakeDirectories(directory_));
}

TEST_F(CheckpointTest, RestoreRollsBackIntoANewGenerationOnce) {
  PsCluster cluster(2);
  MU_ASSERT_OK(cluster.Configure());
  Step(&cluster, 1, {1, 2, 3});
  const std::string state = StateOf(&cluster);
  MU_ASSERT_OK_AND_ASSIGN(const Files files, cluster.admin().Save(cluster.context(), directory_));
  Step(&cluster, 2, {3, 4});
  EXPECT_THAT(cluster.admin().Restore(cluster.context(), directory_, files),
              HasCode(absl::StatusCode::kFailedPrecondition))
      << "updates of a generation are not dropped within it";
  cluster.context().set_generation(2);
  MU_ASSERT_OK(cluster.admin().Restore(cluster.context(), directory_, files));
  EXPECT_TRUE(StateOf(&cluster) == state);
  Step(&cluster, 2, {3, 4});  // of the new generation: applied although the old one had it
  const std::string after = StateOf(&cluster);
  EXPECT_FALSE(after == state);
  MU_ASSERT_OK(cluster.admin().Restore(cluster.context(), directory_, files))
      << "a repeat that comes late";
  EXPECT_TRUE(StateOf(&cluster) == after) << "does nothing";
  cluster.context().set_generation(3);
  MU_ASSERT_OK(cluster.admin().Restore(cluster.context(), directory_, {}));
  EXPECT_EQ(RowsOf(&cluster), 0u) << "no files: the initial values";
}

TEST_F(CheckpointTest, DamagedFilesAreRefusedByNameAndChangeNothing) {
  PsCluster cluster(1);
  MU_ASSERT_OK(cluster.Configure());
  Step(&cluster, 1, {1, 2, 3});
  MU_ASSERT_OK_AND_ASSIGN(const Files files, cluster.admin().Save(cluster.context(), directory_));
  const std::string state = StateOf(&cluster);
  const std::string path = JoinPath(directory_, files[0].name());
  MU_ASSERT_OK_AND_ASSIGN(const std::string good, ReadFile(path));
  cluster.context().set_generation(2);
  const auto expect_refused = [&](absl::StatusCode code) {
    EXPECT_THAT(cluster.admin().Restore(cluster.context(), directory_, files),
                StatusIs(code, HasSubstr(files[0].name())));
    cluster.context().set_generation(1);
    EXPECT_TRUE(StateOf(&cluster) == state);
    cluster.context().set_generation(2);
  };
  for (const size_t at : {size_t{0}, size_t{40}, good.size() / 2, good.size() - 1}) {
    std::string bad = good;
    bad[at] ^= 1;
    MU_ASSERT_OK(WriteFileAtomic(path, bad));
    expect_refused(absl::StatusCode::kDataLoss);
  }
  MU_ASSERT_OK(WriteFileAtomic(path, good.substr(0, good.size() - 1)));
  expect_refused(absl::StatusCode::kDataLoss);
  MU_ASSERT_OK(RemoveFile(path));
  // It says nothing of the file: others may see it.
  expect_refused(absl::StatusCode::kFailedPrecondition);
  MU_ASSERT_OK(WriteFileAtomic(path, good));
  MU_ASSERT_OK(cluster.admin().Restore(cluster.context(), directory_, files));
}

// Created after the files were written, or by one server before and by another after its cut: what
// is in no file has its initial value, the rest is restored.
TEST_F(CheckpointTest, WhatIsYoungerThanTheFilesHasItsInitialValue) {
  PsCluster cluster(1);
  MU_ASSERT_OK(cluster.Configure());
  Step(&cluster, 1, {1, 2, 3});
  MU_ASSERT_OK_AND_ASSIGN(const Files files, cluster.admin().Save(cluster.context(), directory_));
  pb::RoutingProto model = testing::SmallModel(1);
  pb::VariableProto& later = *model.add_variables();
  later = model.variables(0);
  later.set_id(50);
  later.set_name("later");
  PsCluster grown(1, model);
  MU_ASSERT_OK(grown.Configure());
  MU_ASSERT_OK_AND_ASSIGN(const Tensor value, grown.admin().ReadVariable(grown.context(), "later"));
  MU_ASSERT_OK_AND_ASSIGN(const Tensor bias,
                          cluster.admin().ReadVariable(cluster.context(), "bias"));
  grown.context().set_generation(2);
  MU_ASSERT_OK(grown.admin().Restore(grown.context(), directory_, files));
  MU_ASSERT_OK_AND_ASSIGN(const Tensor after, grown.admin().ReadVariable(grown.context(), "later"));
  EXPECT_THAT(after.flat<float>(), ElementsAreArray(value.flat<float>()));
  MU_ASSERT_OK_AND_ASSIGN(const Tensor restored,
                          grown.admin().ReadVariable(grown.context(), "bias"));
  EXPECT_EQ(restored.data<float>()[0], bias.data<float>()[0]);
}

// Its pushes may have been answered before the cut, so the file must have it.
TEST_F(CheckpointTest, WhatIsCreatedWhileACutIsTakenIsInTheFiles) {
  pb::RoutingProto model = testing::SmallModel(1);
  pb::VariableProto& later = *model.add_variables();
  later = model.variables(2);
  later.set_id(50);
  later.set_name("later");
  std::function<void()> meanwhile;
  PsCluster cluster(1, testing::SmallModel(1), {}, {.at = [&](absl::string_view moment) {
                      if (moment != "cut" || meanwhile == nullptr) return;
                      std::exchange(meanwhile, nullptr)();
                    }});
  MU_ASSERT_OK(cluster.Configure());
  meanwhile = [&] {
    pb::RoutingProto more = model;
    *more.mutable_servers() = cluster.client().view()->routing->proto().servers();
    more.set_version(2);
    MU_ASSERT_OK(cluster.client().SetRouting(more));
    MU_ASSERT_OK(cluster.Configure());
    PsSession session = cluster.Session(1);
    session.BeginStep(0);
    const int64_t one = 1;
    const VariableWrite write = {50, VariableWrite::kAssignAdd, &one};
    MU_ASSERT_OK(session.Push({&write, 1}, {}));
  };
  MU_ASSERT_OK_AND_ASSIGN(const Files files, cluster.admin().Save(cluster.context(), directory_));
  ASSERT_EQ(meanwhile, nullptr);
  PsCluster other(1, model);
  other.context().set_generation(2);
  MU_ASSERT_OK(other.Configure());
  MU_ASSERT_OK(other.admin().Restore(other.context(), directory_, files));
  MU_ASSERT_OK_AND_ASSIGN(const Tensor value, other.admin().ReadVariable(other.context(), "later"));
  EXPECT_EQ(value.data<int64_t>()[0], 1);
}

TEST_F(CheckpointTest, FilesOfAnotherModelAreNoticed) {
  PsCluster cluster(1);
  MU_ASSERT_OK(cluster.Configure());
  MU_ASSERT_OK_AND_ASSIGN(Files files, cluster.admin().Save(cluster.context(), directory_));
  pb::RoutingProto model = testing::SmallModel(1);
  for (pb::VariableProto& variable : *model.mutable_variables())
    variable.set_name("other " + variable.name());
  for (pb::TableProto& table : *model.mutable_tables()) table.set_name("other " + table.name());
  PsCluster other(1, model);
  MU_ASSERT_OK(other.Configure());
  EXPECT_THAT(other.admin().Restore(other.context(), directory_, files),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("no file of the checkpoint has")));
  EXPECT_THAT(other.impatient_admin().ReadVariable(other.context(), "other bias"),
              HasCode(absl::StatusCode::kUnavailable))
      << "half a state is not served";
}

TEST_F(CheckpointTest, AFailedRestoreCanBeFollowedByAGoodOne) {
  PsCluster cluster(1);
  MU_ASSERT_OK(cluster.Configure());
  Step(&cluster, 1, {1, 2});
  const std::string state = StateOf(&cluster);
  MU_ASSERT_OK_AND_ASSIGN(const Files files, cluster.admin().Save(cluster.context(), directory_));
  MU_ASSERT_OK_AND_ASSIGN(SafetensorsWriter writer,
                          SafetensorsWriter::Create(JoinPath(directory_, "empty"), {}, {}));
  MU_ASSERT_OK(writer.Finish());
  pb::CheckpointFileProto empty;
  empty.set_name("empty");
  empty.set_bytes(writer.bytes());
  empty.set_crc32c(writer.crc32c());
  cluster.context().set_generation(2);
  EXPECT_THAT(cluster.admin().Restore(cluster.context(), directory_, {empty}),
              HasCode(absl::StatusCode::kDataLoss));
  EXPECT_THAT(cluster.impatient_admin().ReadVariable(cluster.context(), "bias"),
              HasCode(absl::StatusCode::kUnavailable));
  MU_ASSERT_OK(cluster.admin().Restore(cluster.context(), directory_, files));
  EXPECT_TRUE(StateOf(&cluster) == state);
}

TEST_F(CheckpointTest, SavesIntoImpossiblePlacesFailAloud) {
  PsCluster cluster(1);
  MU_ASSERT_OK(cluster.Configure());
  const std::string file = JoinPath(directory_, "file");
  MU_ASSERT_OK(WriteFileAtomic(file, "x"));
  EXPECT_FALSE(cluster.admin().Save(cluster.context(), JoinPath(file, "below")).ok());
  for (const std::string& name : {std::string("../escape"), std::string("..\0x", 4)}) {
    EXPECT_THAT(cluster.admin().Save(cluster.context(), directory_, name),
                HasCode(absl::StatusCode::kInvalidArgument));
  }
  MU_EXPECT_OK(cluster.admin().ReadVariable(cluster.context(), "bias"));
}

TEST_F(CheckpointTest, SafetensorsReadsBackAndLeavesNothingHalf) {
  const std::string path = JoinPath(directory_, "x.safetensors");
  const std::vector<int64_t> ids = {4, 5};
  const std::vector<float> values = {1, 2, 3};
  const std::vector<TensorEntry> entries = {
      {"a \"quoted\"/name", kInt64, {2}}, {"b", kFloat32, {3, 1}}, {"c", kUInt8, {0}}};
  {
    MU_ASSERT_OK_AND_ASSIGN(SafetensorsWriter writer,
                            SafetensorsWriter::Create(path, entries, {{"k", "v"}}));
    MU_ASSERT_OK(writer.Append(ids.data(), 16));
    EXPECT_THAT(writer.Finish(), HasCode(absl::StatusCode::kFailedPrecondition));
  }
  MU_ASSERT_OK_AND_ASSIGN(const auto left, ListDirectory(directory_));
  EXPECT_TRUE(left.empty());
  MU_ASSERT_OK_AND_ASSIGN(SafetensorsWriter writer,
                          SafetensorsWriter::Create(path, entries, {{"k", "v"}}));
  MU_ASSERT_OK(writer.Append(ids.data(), 16));
  MU_ASSERT_OK(writer.Append(values.data(), 12));
  MU_ASSERT_OK(writer.Finish());
  MU_ASSERT_OK_AND_ASSIGN(const uint64_t size, FileSize(path));
  EXPECT_EQ(size, writer.bytes());
  MU_ASSERT_OK_AND_ASSIGN(const SafetensorsReader reader, SafetensorsReader::Open(path));
  ASSERT_EQ(reader.entries().size(), 3u);
  std::vector<float> read(2);
  const TensorEntry* b = reader.Find("b");
  ASSERT_NE(b, nullptr);
  EXPECT_EQ(b->shape, (std::vector<int64_t>{3, 1}));
  MU_ASSERT_OK(reader.Read(*b, 4, read.data(), 8));
  EXPECT_EQ(read, (std::vector<float>{2, 3}));
  EXPECT_THAT(reader.Read(*b, 8, read.data(), 8), HasCode(absl::StatusCode::kDataLoss));
}

// Several buffers, filled in both ways, and ends on, before and behind a block of the disk.
TEST_F(CheckpointTest, LargeSafetensorsHaveTheirBytesAndSum) {
  SplitMix random(5);
  std::string data((3 << 20) + 5000, '\0');
  for (char& byte : data) byte = static_cast<char>(random.Next());
  for (const int64_t shorter : {0, 1, 4095, 4096, 4097, 5000}) {
    const std::string path = JoinPath(directory_, absl::StrCat(shorter, ".safetensors"));
    const size_t size = data.size() - static_cast<size_t>(shorter);
    MU_ASSERT_OK_AND_ASSIGN(
        SafetensorsWriter writer,
        SafetensorsWriter::Create(path, {{"x", kUInt8, {static_cast<int64_t>(size)}}}, {}));
    for (size_t done = 0; done < size;) {
      const size_t some =
          std::min<size_t>(size - done, 1 + random.Below(SafetensorsWriter::kMostRoom));
      if (random.Below(2) == 0) {
        MU_ASSERT_OK(writer.Append(data.data() + done, some));
      } else {
        MU_ASSERT_OK_AND_ASSIGN(char* const room, writer.Room(some));
        std::memcpy(room, data.data() + done, some);
        writer.Wrote(some);
      }
      done += some;
    }
    MU_ASSERT_OK(writer.Finish());
    MU_ASSERT_OK_AND_ASSIGN(const std::string written, ReadFile(path));
    ASSERT_EQ(written.size(), writer.bytes());
    EXPECT_TRUE(absl::EndsWith(written, data.substr(0, size)));
    EXPECT_EQ(Crc32c(written.data(), written.size()), writer.crc32c());
  }
}

TEST_F(CheckpointTest, MalformedSafetensorsAreRefused) {
  const std::string path = JoinPath(directory_, "x.safetensors");
  const auto with_header = [&](const std::string& json, size_t data) {
    const uint64_t size = json.size();
    EXPECT_THAT(WriteFileAtomic(path, std::string(reinterpret_cast<const char*>(&size), 8) + json +
                                          std::string(data, 'x')),
                testing::IsOk());
    return SafetensorsReader::Open(path).status();
  };
  MU_EXPECT_OK(with_header(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", 8));
  for (const char* json : {
           "",
           "[]",
           "{",
           "nonsense",
           R"({"a":1})",
           R"({"a":{"dtype":"F99","shape":[2],"data_offsets":[0,8]}})",
           R"({"a":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}})",
           R"({"a":{"dtype":"F32","shape":[-2],"data_offsets":[0,8]}})",
           R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[8,0]}})",
           R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0]}})",
           R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})",
           R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})",
           R"({"a":{"dtype":"F32","shape":[4],"data_offsets":[0,16]}})",
           R"({"a":{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,0]}})",
           R"({"a":{"dtype":"F32","shape":[2.5],"data_offsets":[0,8]}})",
       }) {
    EXPECT_THAT(with_header(json, 8), HasCode(absl::StatusCode::kDataLoss)) << json;
  }
  MU_ASSERT_OK(WriteFileAtomic(path, "short"));
  EXPECT_THAT(SafetensorsReader::Open(path), HasCode(absl::StatusCode::kDataLoss));
  MU_ASSERT_OK(WriteFileAtomic(path, std::string(100, '\xFF')));
  EXPECT_THAT(SafetensorsReader::Open(path), HasCode(absl::StatusCode::kDataLoss));
}

}  // namespace
}  // namespace mu
