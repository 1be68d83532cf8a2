// Binary formats promise what text does: each record once an epoch, whichever worker is killed.
#include <string>

#include "absl/strings/str_cat.h"
#include "common/records/tfrecord_format.h"
#include "coordinator/frontend/memory_data.h"
#include "tests/common/records/example.pb.h"
#include "tests/conformance/conformance.h"
#include "tests/conformance/numbers_file.h"

namespace mu {
namespace {

using testing::TestCluster;
using testing::WriteFile;

constexpr int64_t kRecords = 20'000;
constexpr uint32_t kEpochs = 2;

// IDX: an image of 2 int32 elements, the record's number and 0, and the number again as its label.
std::string BigEndian(int64_t value) {
  std::string text;
  for (int shift = 24; shift >= 0; shift -= 8) text.push_back(static_cast<char>(value >> shift));
  return text;
}
std::string IdxFile(int64_t first, int64_t count, bool image) {
  std::string file = {'\0', '\0', '\x0C', static_cast<char>(image ? 2 : 1)};
  file += BigEndian(count);
  if (image) file += BigEndian(2);
  for (int64_t i = first; i < first + count; ++i) {
    file += BigEndian(i);
    if (image) file += BigEndian(0);
  }
  return file;
}

std::string TfrecordFile(int64_t first, int64_t count) {
  std::string file;
  for (int64_t i = first; i < first + count; ++i) {
    muster::testing::Example example;
    auto& features = *example.mutable_features()->mutable_feature();
    features["label"].mutable_int64_list()->add_value(i);
    features["image"].mutable_float_list()->add_value(static_cast<float>(i));
    features["image"].mutable_float_list()->add_value(0);
    file += TfrecordFrame(example.SerializeAsString());
  }
  return file;
}

// Goes through two epochs while one of two workers is killed and started again; the number of
// visits of each record, and whether image and label always were of one record.
void VisitAll(TestCluster* cluster, DatasetSpec spec) {
  Coordinator& c = cluster->coordinator();
  MU_ASSERT_OK_AND_ASSIGN(
      const Variable visits,
      c.CreateVariable({.name = "visits", .shape = Shape({kRecords}), .trainable = false}));
  MU_ASSERT_OK_AND_ASSIGN(
      const Dataset data,
      c.CreateDataset(
          spec.Batch(8).BlockRecords(16).Shuffle(500).Epochs(kEpochs).Records(4, {0, 1, 3})));
  MU_ASSERT_OK_AND_ASSIGN(const Function visit, c.DefineFunction("visit", [&](FunctionBuilder& f) {
    const BatchRef batch = f.NextBatch(data);
    const Sym label = batch["label"];
    AssignAdd(visits, GatherGrad(Cast(OnesLike(label), kFloat32), label, Read(visits), 0));
    f.Return("difference",
             ReduceSum(Square(ReduceSum(batch["image"], {1}) - Cast(label, kFloat32))));
  }));
  std::vector<RemoteValue> values;
  for (int i = 0; i < 400; ++i) values.push_back(c.Schedule(visit, {.steps = 10}));
  constexpr uint64_t kSteps = kEpochs * kRecords * 3 / 4 / 8;
  for (int kill = 1; kill <= 3; ++kill) {
    testing::WaitWhile([&] { return c.Stats().steps < static_cast<uint64_t>(kill) * 200; });
    cluster->KillWorker(kill % 2);
    MU_ASSERT_OK(cluster->StartWorker(kill % 2));
  }
  ASSERT_LT(c.Stats().steps, kSteps) << "the work was over before the last kill";
  MU_ASSERT_OK(c.Join());
  for (const RemoteValue& value : values) {
    MU_ASSERT_OK_AND_ASSIGN(const FunctionResult result, value.Fetch());
    for (size_t i = 0; i < result.steps(); ++i) {
      MU_ASSERT_OK_AND_ASSIGN(const Tensor difference, result.Get(i, "difference"));
      EXPECT_EQ(*difference.data<float>(), 0);
    }
  }
  MU_ASSERT_OK_AND_ASSIGN(const Tensor counts, c.Read(visits));
  for (int64_t i = 0; i < kRecords; ++i) {
    // Each file begins at a multiple of 4.
    EXPECT_EQ(counts.data<float>()[i], i % 4 == 2 ? 0 : kEpochs) << "record " << i;
  }
}

TEST(ConformanceFormats, IdxExactlyOnce) {
  MU_ASSERT_OK_AND_ASSIGN(auto cluster, TestCluster::Start({.workers = 2, .ps = 2}));
  const std::string d = cluster->directory();
  WriteFile(d + "/i0", IdxFile(0, 4'000, true));
  WriteFile(d + "/l0.gz", IdxFile(0, 4'000, false));
  WriteFile(d + "/i1.gz", IdxFile(4'000, 16'000, true));
  WriteFile(d + "/l1", IdxFile(4'000, 16'000, false));
  VisitAll(cluster.get(),
           Idx({d + "/i0", d + "/i1.gz"}, {d + "/l0.gz", d + "/l1"}, {.scale = 1, .shape = {2}}));
}

TEST(ConformanceFormats, TfrecordExactlyOnce) {
  MU_ASSERT_OK_AND_ASSIGN(auto cluster, TestCluster::Start({.workers = 2, .ps = 2}));
  const std::string d = cluster->directory();
  WriteFile(d + "/a.tfrecord", TfrecordFile(0, 4'000));
  WriteFile(d + "/b.tfrecord.zst", TfrecordFile(4'000, 16'000));
  VisitAll(cluster.get(), Tfrecord({d + "/a.tfrecord", d + "/b.tfrecord.zst"})
                              .Numbers("image", {2})
                              .Id("label", kRecords));
}

TEST(ConformanceFormats, MemoryExactlyOnce) {
  MU_ASSERT_OK_AND_ASSIGN(auto cluster, TestCluster::Start({.workers = 2, .ps = 2}));
  int64_t next = 0;
  VisitAll(cluster.get(),
           FromGenerator({{.name = "image", .shape = {2}}, {.name = "label", .dtype = kInt64}},
                         [&](GeneratedRecord& record) {
                           record.Floats(0)[0] = static_cast<float>(next);
                           record.Ints(1)[0] = next;
                           return next++ < kRecords;
                         }));
}

}  // namespace
}  // namespace mu
