#include "coordinator/frontend/memory_data.h"

#include <gmock/gmock.h>

#include "common/graph/dataset_schema.h"
#include "tests/testing/matchers.h"

namespace mu {
namespace {

using ::mu::testing::StatusIs;
using ::testing::HasSubstr;

TEST(MemoryDataTest, TensorsBecomeFilesThatTravelAlong) {
  MU_ASSERT_OK_AND_ASSIGN(const pb::DatasetProto proto,
                          FromTensors({{"x", Tensor::Of<float>({3, 2}, {1, 2, 3, 4, 5, 6})},
                                       {"y", Tensor::Of<int64_t>({3}, {7, 8, 9})}})
                              .Batch(2)
                              .ToProto());
  ASSERT_EQ(proto.inline_files_size(), 2);
  EXPECT_EQ(proto.files(0), proto.inline_files(0).path());
  EXPECT_EQ(proto.companions(0).files(0), proto.inline_files(1).path());
  const auto schema = SchemaOf(proto);
  ASSERT_EQ(schema.size(), 2u);
  EXPECT_EQ(Shape(schema[0].shape()), Shape({-1, 2}));
  EXPECT_EQ(schema[1].dtype(), kInt64);
}

TEST(MemoryDataTest, AGeneratorIsCalledUntilItEnds) {
  int calls = 0;
  const DatasetSpec generated = FromGenerator(
      {{.name = "x", .shape = {2}}, {.name = "y", .dtype = kInt64}}, [&](GeneratedRecord& record) {
        record.Floats(0)[1] = static_cast<float>(calls);
        record.Ints(1)[0] = 10 * calls;
        return calls++ < 3;
      });
  EXPECT_EQ(calls, 4);
  const DatasetSpec given = FromTensors({{"x", Tensor::Of<float>({3, 2}, {0, 0, 0, 1, 0, 2})},
                                         {"y", Tensor::Of<int64_t>({3}, {0, 10, 20})}});
  EXPECT_EQ(DatasetSpec(generated).Batch(1).ToProto()->SerializeAsString(),
            DatasetSpec(given).Batch(1).ToProto()->SerializeAsString());
}

TEST(MemoryDataTest, SaysWhatItCannotTake) {
  const auto refused = [](DatasetSpec spec, const std::string& what) {
    EXPECT_THAT(spec.Batch(1).ToProto(),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(what)));
  };
  refused(FromTensors({}), "no columns");
  refused(FromTensors({{"x", Tensor::Scalar(1.0f)}}), "is a scalar");
  refused(FromTensors({{"x", Tensor::Of<int32_t>({1}, {1})}}), "is int32");
  refused(FromTensors({{"x", Tensor::Of<float>({2}, {1, 2})}, {"y", Tensor::Of<float>({1}, {1})}}),
          "\"y\" has 1 records, the first column has 2");
  refused(FromTensors({{"x", Tensor(kFloat32, {(int64_t{17} << 20)})}}), "mu::Npy");
  refused(FromGenerator({}, [](GeneratedRecord&) { return false; }), "no columns");
  refused(FromGenerator({{.name = "x", .shape = {1 << 20}}}, [](GeneratedRecord&) { return true; }),
          "mu::Npy");
}

}  // namespace
}  // namespace mu
