// .npy and safetensors files, read back with NumPy.
#include "coordinator/export/export_values.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <cstdio>

#include "absl/strings/str_split.h"
#include "common/sharding/initializer.h"
#include "tests/coordinator/export/checkpoint_maker.h"
#include "tests/testing/matchers.h"

namespace mu {
namespace {

using testing::CheckpointMaker;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr int kNoNumpy = 77;
constexpr int kNoPython = 127;

uint64_t Crc(const void* data, size_t size) {
  return crc32(0, static_cast<const Bytef*>(data), static_cast<uInt>(size));
}

// What read_export.py prints; `skipped` if there is no NumPy. Debian's is for Debian's Python.
std::vector<std::string> ReadWithNumpy(const std::string& kind, const std::string& path,
                                       bool* skipped) {
  FILE* pipe = popen(
      absl::StrCat("/usr/bin/python3 ", MUSTER_READ_EXPORT, " ", kind, " ", path, " 2>&1").c_str(),
      "r");
  std::string text;
  char buffer[4096];
  while (const size_t n = std::fread(buffer, 1, sizeof(buffer), pipe)) text.append(buffer, n);
  const int status = pclose(pipe);
  *skipped = WEXITSTATUS(status) == kNoNumpy || WEXITSTATUS(status) == kNoPython;
  EXPECT_TRUE(status == 0 || *skipped) << text;
  return absl::StrSplit(text, '\n', absl::SkipEmpty());
}

class ExportValuesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    MU_ASSERT_OK_AND_ASSIGN(auto directory, TempDirectory::Create("export_values"));
    directory_ = std::make_unique<TempDirectory>(std::move(directory));
    CheckpointMaker maker(2);
    maker.AddVariable({.name = "deep/w", .shape = {2, 3}, .partitioner = FixedShards{2}},
                      Tensor::Of<float>({2, 3}, weights_));
    maker.AddVariable({.name = "step", .dtype = kInt64}, Tensor::Scalar<int64_t>(9));
    maker.AddVariable({.name = "list", .shape = {1}, .dtype = kInt32},
                      Tensor::Of<int32_t>({1}, {7}));
    maker.AddTable(
        {.name = "items", .rows = 5, .dim = 2, .initializer = Normal{0, 1}, .partitions = 3},
        {{1, {1, 2}}, {4, {3, 4}}});
    MU_ASSERT_OK(maker.Write(Path("checkpoint")));
    const RowInitializer initializer(maker.manifest.tables(0).initializer(), "items");
    items_.resize(10);
    for (uint64_t row = 0; row < 5; ++row) initializer.FillRow(row, &items_[row * 2], 2);
    items_[2] = 1, items_[3] = 2, items_[8] = 3, items_[9] = 4;
  }
  std::string Path(const std::string& name) const { return JoinPath(directory_->path(), name); }

  std::vector<std::string> Expected() const {
    const int64_t step = 9;
    const int32_t list = 7;
    return {absl::StrCat("deep/w <f4 [2,3] ", Crc(weights_.data(), 24)),
            absl::StrCat("items <f4 [5,2] ", Crc(items_.data(), 40)),
            absl::StrCat("list <i4 [1] ", Crc(&list, 4)),
            absl::StrCat("step <i8 [] ", Crc(&step, 8))};
  }

  const std::vector<float> weights_ = {1, 2, 3, 4, 5, 6};
  std::vector<float> items_;
  std::unique_ptr<TempDirectory> directory_;
};

TEST_F(ExportValuesTest, NumpyReadsNpyFiles) {
  MU_ASSERT_OK_AND_ASSIGN(const auto checkpoint, CheckpointValues::Open(Path("checkpoint")));
  MU_ASSERT_OK_AND_ASSIGN(const auto paths,
                          WriteNpyFiles(checkpoint, checkpoint.values(), Path("out/npy")));
  EXPECT_THAT(paths, ElementsAre(Path("out/npy/deep/w.npy"), Path("out/npy/step.npy"),
                                 Path("out/npy/list.npy"), Path("out/npy/items.npy")));
  bool skipped;
  const auto read = ReadWithNumpy("npy", Path("out/npy"), &skipped);
  if (skipped) GTEST_SKIP() << "python3-numpy is not installed";
  EXPECT_EQ(read, Expected());
}

TEST_F(ExportValuesTest, NumpyReadsSafetensors) {
  MU_ASSERT_OK_AND_ASSIGN(const auto checkpoint, CheckpointValues::Open(Path("checkpoint")));
  MU_ASSERT_OK(WriteSafetensors(checkpoint, checkpoint.values(), Path("model.safetensors")));
  bool skipped;
  const auto read = ReadWithNumpy("safetensors", Path("model.safetensors"), &skipped);
  if (skipped) GTEST_SKIP() << "python3-numpy is not installed";
  EXPECT_EQ(read, Expected());
}

// Without NumPy: the files' own bytes.
TEST_F(ExportValuesTest, NpyBytes) {
  const std::string header = NpyHeader(kFloat32, Shape({5, 2}));
  EXPECT_EQ(header.size() % 64, 0u);
  EXPECT_EQ(header.substr(0, 8), std::string("\x93NUMPY\x01\x00", 8));
  EXPECT_EQ(header[8] + 256 * header[9] + 10, static_cast<int>(header.size()));
  EXPECT_THAT(header, HasSubstr("{'descr': '<f4', 'fortran_order': False, 'shape': (5, 2), }"));
  EXPECT_EQ(header.back(), '\n');
  EXPECT_THAT(NpyHeader(kInt64, Shape({5})),
              HasSubstr("'<i8', 'fortran_order': False, 'shape': (5,)"));
  EXPECT_THAT(NpyHeader(kInt32, Shape()), HasSubstr("'shape': ()"));

  MU_ASSERT_OK_AND_ASSIGN(const auto checkpoint, CheckpointValues::Open(Path("checkpoint")));
  MU_ASSERT_OK(WriteNpyFiles(checkpoint, {*checkpoint.Find("items")}, Path("npy")).status());
  MU_ASSERT_OK_AND_ASSIGN(const std::string bytes, ReadFile(Path("npy/items.npy")));
  EXPECT_EQ(bytes, header + std::string(reinterpret_cast<const char*>(items_.data()), 40));
}

TEST_F(ExportValuesTest, SelectsByPattern) {
  MU_ASSERT_OK_AND_ASSIGN(const auto checkpoint, CheckpointValues::Open(Path("checkpoint")));
  const auto names = [&](const std::vector<std::string>& patterns) {
    std::vector<std::string> found;
    const auto selected = SelectValues(checkpoint.values(), patterns);
    MU_EXPECT_OK(selected);
    for (const StoredValue& value : *selected) found.push_back(value.name);
    return found;
  };
  EXPECT_THAT(names({}), ElementsAre("deep/w", "step", "list", "items"));
  EXPECT_THAT(names({"items", "deep/*"}), ElementsAre("deep/w", "items"));
  const auto unknown = SelectValues(checkpoint.values(), {"deep/*", "item"});
  EXPECT_EQ(unknown.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(
      std::string(unknown.status().message()),
      HasSubstr("no variable or table 'item'; did you mean \"items\"?; it has deep/w, step, list, "
                "items"));
}

TEST_F(ExportValuesTest, NamesThatLeadOutOfTheFolder) {
  CheckpointMaker maker(1);
  for (const char* name : {"../w", "/w", "a//b", "a/."})
    maker.AddVariable({.name = name}, Tensor::Scalar<float>(1));
  MU_ASSERT_OK(maker.Write(Path("strange")));
  MU_ASSERT_OK_AND_ASSIGN(const auto checkpoint, CheckpointValues::Open(Path("strange")));
  for (const StoredValue& value : checkpoint.values()) {
    const auto written = WriteNpyFiles(checkpoint, {value}, Path("npy"));
    EXPECT_EQ(written.status().code(), absl::StatusCode::kInvalidArgument) << value.name;
    EXPECT_THAT(std::string(written.status().message()), HasSubstr(value.name));
  }
  MU_EXPECT_OK(WriteSafetensors(checkpoint, checkpoint.values(), Path("strange.safetensors")));
}

// What is not finished leaves nothing behind.
TEST_F(ExportValuesTest, AFailureLeavesNoFile) {
  MU_ASSERT_OK_AND_ASSIGN(const auto checkpoint, CheckpointValues::Open(Path("checkpoint")));
  MU_ASSERT_OK(RemoveFile(Path("checkpoint/manifest.json")));
  MU_ASSERT_OK(MakeDirectories(Path("npy/items.npy")));  // a folder where a file is to be
  EXPECT_FALSE(WriteNpyFiles(checkpoint, {*checkpoint.Find("items")}, Path("npy")).ok());
  EXPECT_THAT(ListDirectory(Path("npy")).value(), ElementsAre("items.npy"));
  EXPECT_THAT(ListDirectory(Path("npy/items.npy")).value(), IsEmpty());
}

}  // namespace
}  // namespace mu
