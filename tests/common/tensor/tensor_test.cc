#include "common/tensor/tensor.h"

#include "tests/testing/matchers.h"

namespace mu {
namespace {

using ::mu::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(ShapeTest, PrintsUnknownSizesAndCountsElements) {
  EXPECT_EQ(Shape({kUnknownDim, 16}).ToString(), "[?, 16]");
  EXPECT_EQ(Shape().ToString(), "[]");
  EXPECT_EQ(Shape().elements(), 1);
  EXPECT_EQ(Shape({3, 0, 5}).elements(), 0);
  EXPECT_FALSE(Shape({kUnknownDim, 16}).IsFullyKnown());
  EXPECT_EQ(Shape(Shape({2, -1}).ToProto()), Shape({2, -1}));
}

TEST(TensorTest, MemoryIsAlignedAndSharedByCopies) {
  for (int64_t n : {0, 1, 3, 1000}) {
    Tensor a(kUInt8, {n});
    EXPECT_EQ(reinterpret_cast<uintptr_t>(a.raw()) % 64, 0u);
  }
  Tensor a = Tensor::Of<float>({2}, {1, 2});
  Tensor b = a;
  b.data<float>()[0] = 5;
  EXPECT_THAT(a.flat<float>(), ElementsAre(5, 2));
}

TEST(TensorTest, GoesThroughItsMessage) {
  for (const Tensor& tensor : {Tensor::Of<int64_t>({3}, {1, -2, int64_t{1} << 40}),
                               Tensor::Scalar<bool>(true), Tensor(kFloat32, {0, 4})}) {
    const absl::StatusOr<Tensor> back = Tensor::FromProto(tensor.ToProto());
    MU_ASSERT_OK(back.status());
    EXPECT_EQ(back->dtype(), tensor.dtype());
    EXPECT_EQ(back->shape(), tensor.shape());
    EXPECT_EQ(back->ToProto().data(), tensor.ToProto().data());
  }
}

TEST(TensorTest, RefusesMessagesThatDoNotAgreeWithThemselves) {
  muster::TensorProto proto = Tensor::Of<float>({2}, {1, 2}).ToProto();
  proto.mutable_data()->resize(7);
  EXPECT_THAT(Tensor::FromProto(proto),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("7 bytes, not 8")));
  proto.mutable_shape()->set_dims(0, -3);
  EXPECT_THAT(Tensor::FromProto(proto),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("impossible shape")));
  proto.mutable_shape()->set_dims(0, int64_t{1} << 41);
  EXPECT_THAT(Tensor::FromProto(proto),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("impossible shape")));
  proto.mutable_shape()->set_dims(0, 1);
  proto.set_dtype(muster::DTYPE_INVALID);
  EXPECT_THAT(Tensor::FromProto(proto),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("unknown type")));
}

TEST(BatchTest, FindsColumnsByName) {
  Batch batch;
  batch.names = {"a", "b"};
  batch.columns = {Tensor::Scalar<float>(1), Tensor::Scalar<float>(2)};
  EXPECT_EQ(batch.Find("b"), &batch.columns[1]);
  EXPECT_EQ(batch.Find("c"), nullptr);
}

}  // namespace
}  // namespace mu
