// Edges of the kernels of neural networks: far tails, NaNs, and what they refuse.
#include <cmath>
#include <limits>

#include "common/base/hash.h"
#include "common/exec/small_gemm.h"
#include "tests/common/exec/dense.h"
#include "tests/common/exec/run_op.h"
#include "tests/testing/matchers.h"

namespace mu {
namespace {

using ::mu::testing::IntsAttr;
using ::mu::testing::RunOp;
using ::mu::testing::StatusIs;
using ::mu::testing::StringAttr;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr absl::StatusCode kInvalid = absl::StatusCode::kInvalidArgument;
constexpr absl::StatusCode kOutOfRange = absl::StatusCode::kOutOfRange;

Tensor Random(const Shape& shape, uint64_t seed = 3) {
  SplitMix random(seed);
  Tensor tensor(kFloat32, shape);
  for (float& value : tensor.flat<float>()) value = static_cast<float>(4 * random.Unit() - 2);
  return tensor;
}

float First(const absl::StatusOr<std::vector<Tensor>>& results) {
  EXPECT_TRUE(results.ok()) << results.status();
  return results.ok() ? (*results)[0].data<float>()[0] : kNan;
}

TEST(SoftmaxKernel, LogitsFarApartDoNotOverflow) {
  const Tensor x = Tensor::Of<float>({1, 3}, {-1e4f, 3e4f, 3e4f});
  auto result = RunOp("softmax", {x});
  MU_ASSERT_OK(result.status());
  EXPECT_THAT((*result)[0].flat<float>(), ElementsAre(0, 0.5f, 0.5f));
  EXPECT_FLOAT_EQ(First(RunOp("logsumexp", {x})), 3e4f + std::log(2.0f));
  EXPECT_FLOAT_EQ(First(RunOp("log_softmax", {x})), -4e4f - std::log(2.0f));
}

TEST(SoftmaxKernel, InfinitiesAndNans) {
  EXPECT_EQ(First(RunOp("logsumexp", {Tensor::Of<float>({2}, {-kInf, -kInf})})), -kInf);
  EXPECT_EQ(First(RunOp("logsumexp", {Tensor::Of<float>({2}, {1, kInf})})), kInf);
  EXPECT_EQ(First(RunOp("logsumexp", {Tensor(kFloat32, {1, 0})})), -kInf);
  EXPECT_EQ(First(RunOp("softmax", {Tensor::Of<float>({2}, {-kInf, 2})})), 0);
  for (const char* op : {"softmax", "log_softmax", "logsumexp"}) {
    for (int64_t at : {0, 4, 8, 9}) {
      Tensor x = Random({10});
      x.data<float>()[at] = kNan;
      const auto result = RunOp(op, {x});
      MU_ASSERT_OK(result.status());
      for (const float value : (*result)[0].flat<float>()) EXPECT_TRUE(std::isnan(value)) << op;
    }
  }
}

TEST(SoftmaxKernel, ARowDoesNotDependOnItsPlace) {
  const Tensor all = Random({5, 13});
  for (const char* op : {"softmax", "log_softmax", "logsumexp"}) {
    const auto whole = RunOp(op, {all});
    MU_ASSERT_OK(whole.status());
    for (int64_t row = 0; row < 5; ++row) {
      const auto one =
          RunOp(op, {Tensor::Of<float>({1, 13}, all.flat<float>().subspan(row * 13, 13))});
      MU_ASSERT_OK(one.status());
      const auto values = (*one)[0].flat<float>();
      EXPECT_EQ(values, (*whole)[0].flat<float>().subspan(row * values.size(), values.size()));
    }
  }
}

TEST(CrossEntropyKernel, ALabelThatIsNoClassIsAnError) {
  const Tensor logits = Random({3, 4});
  for (const int64_t bad : {-1, 4}) {
    const Tensor labels = Tensor::Of<int64_t>({3}, {0, bad, 3});
    const std::string message = "label " + std::to_string(bad) + " (number 1 of 3)";
    EXPECT_THAT(RunOp("sparse_softmax_cross_entropy", {logits, labels}),
                StatusIs(kOutOfRange, HasSubstr(message)));
    EXPECT_THAT(RunOp("sparse_softmax_cross_entropy_grad", {Random({3}), logits, labels}),
                StatusIs(kOutOfRange, HasSubstr(message)));
  }
}

TEST(CrossEntropyKernel, AHiddenClassOfLabelZeroCountsForNothing) {
  const Tensor logits = Tensor::Of<float>({1, 3}, {-kInf, 1, 1});
  const Tensor labels = Tensor::Of<float>({1, 3}, {0, 0.5f, 0.5f});
  EXPECT_FLOAT_EQ(First(RunOp("softmax_cross_entropy", {logits, labels})), std::log(2.0f));
}

TEST(NeuralKernels, RefuseSizesThatDoNotFit) {
  const auto hidden = [](int rank) { return Shape(std::vector<int64_t>(rank, kUnknownDim)); };
  const auto refusal = [&](const std::string& op, const std::vector<Tensor>& inputs,
                           const testing::GraphMaker::Attrs& attrs = {}) {
    std::vector<Shape> shapes;
    for (const Tensor& input : inputs) shapes.push_back(hidden(input.shape().rank()));
    const auto result = RunOp(op, inputs, attrs, shapes);
    EXPECT_THAT(result, StatusIs(kInvalid, ::testing::_)) << op;
    return std::string(result.status().message());
  };
  EXPECT_THAT(refusal("softmax_cross_entropy", {Random({2, 3}), Random({2, 4})}),
              HasSubstr("labels of shape [2, 4]"));
  EXPECT_THAT(refusal("sparse_softmax_cross_entropy",
                      {Random({2, 3}), Tensor::Of<int64_t>({3}, {0, 0, 0})}),
              HasSubstr("labels of shape [3]"));
  EXPECT_THAT(refusal("layer_norm", {Random({2, 3}), Random({4}), Random({3})}),
              HasSubstr("gamma of shape [4] for rows of 3"));
  EXPECT_THAT(refusal("layer_norm", {Random({2, 3}), Random({3}), Random({2})}),
              HasSubstr("beta of shape [2]"));
  EXPECT_THAT(refusal("rms_norm_grad", {Random({2, 3}), Random({3, 3}), Random({3})}),
              HasSubstr("dy of shape [2, 3]"));
  EXPECT_THAT(refusal("pairwise_interactions_grad", {Random({2, 4}), Random({2, 3, 5})}),
              HasSubstr("pairs of [2, 3, 5]"));
  EXPECT_THAT(refusal("batch_matmul", {Random({2, 3, 4}), Random({3, 4, 2})}),
              HasSubstr("sizes do not fit: [2, 3, 4] times [3, 4, 2]"));
  EXPECT_THAT(refusal("batch_matmul", {Random({2, 3, 4}), Random({3, 2})}),
              HasSubstr("sizes do not fit"));
  const testing::GraphMaker::Attrs window = {{"strides", IntsAttr({1, 1})},
                                             {"padding", StringAttr("valid")}};
  EXPECT_THAT(refusal("conv2d", {Random({1, 4, 4, 2}), Random({2, 2, 3, 1})}, window),
              HasSubstr("a filter of shape [2, 2, 3, 1]"));
  EXPECT_THAT(refusal("conv2d_input_grad",
                      {Random({1, 4, 3, 1}), Random({1, 4, 4, 2}), Random({2, 2, 2, 1})}, window),
              HasSubstr("conv2d makes [1, 3, 3, 1]"));
  testing::GraphMaker::Attrs pool = window;
  pool.push_back({"size", IntsAttr({2, 2})});
  EXPECT_THAT(refusal("max_pool2d_grad", {Random({1, 4, 3, 2}), Random({1, 4, 4, 2})}, pool),
              HasSubstr("the pool makes [1, 3, 3, 2]"));
}

// A graph may name any number of rows, matrices or windows that have no elements; they take no
// time.
TEST(NeuralKernels, NothingOfManyTakesNoTime) {
  const int64_t many = int64_t{1} << 19;
  const Tensor empty(kFloat32, {many, many, 0});
  const Tensor none(kFloat32, {0});
  for (const char* op : {"softmax", "log_softmax"}) MU_EXPECT_OK(RunOp(op, {empty}).status());
  MU_EXPECT_OK(RunOp("layer_norm", {empty, none, none}).status());
  MU_EXPECT_OK(RunOp("rms_norm", {empty, none}).status());
  MU_EXPECT_OK(RunOp("layer_norm_grad", {empty, empty, none}).status());
  MU_EXPECT_OK(RunOp("batch_matmul", {Tensor(kFloat32, {many, 0, 3}), Tensor(kFloat32, {3, many})})
                   .status());
  const testing::GraphMaker::Attrs pool = {
      {"strides", IntsAttr({1, 1})}, {"padding", StringAttr("same")}, {"size", IntsAttr({2, 2})}};
  const Tensor images(kFloat32, {1, many, many, 0});
  for (const char* op : {"max_pool2d", "avg_pool2d"}) {
    MU_EXPECT_OK(RunOp(op, {images}, pool).status());
    MU_EXPECT_OK(RunOp(op + std::string("_grad"), {images, images}, pool).status());
  }
}

// A window larger than an image of unknown size leaves nothing over.
TEST(ImageKernels, ImagesThatAreTooSmallGiveNothing) {
  const testing::GraphMaker::Attrs window = {{"strides", IntsAttr({1, 1})},
                                             {"padding", StringAttr("valid")}};
  const auto result = RunOp("conv2d", {Random({2, 2, 4, 1}), Random({3, 3, 1, 5})}, window,
                            {Shape({-1, -1, -1, 1}), Shape({3, 3, 1, 5})});
  MU_ASSERT_OK(result.status());
  EXPECT_EQ((*result)[0].shape(), Shape({2, 0, 2, 5}));
}

TEST(ImageKernels, PoolsKeepNans) {
  Tensor x = Random({1, 4, 4, 1});
  x.data<float>()[5] = kNan;
  const testing::GraphMaker::Attrs pool = {
      {"strides", IntsAttr({2, 2})}, {"padding", StringAttr("valid")}, {"size", IntsAttr({2, 2})}};
  for (const char* op : {"max_pool2d", "avg_pool2d"}) {
    const auto result = RunOp(op, {x}, pool);
    MU_ASSERT_OK(result.status());
    EXPECT_TRUE(std::isnan((*result)[0].data<float>()[0])) << op;
    EXPECT_FALSE(std::isnan((*result)[0].data<float>()[1])) << op;
  }
}

// A batch of several blocks, as the gradient of a filter adds up.
TEST(ImageKernels, ManyImagesAreTheirParts) {
  const testing::GraphMaker::Attrs window = {{"strides", IntsAttr({1, 1})},
                                             {"padding", StringAttr("same")}};
  const Tensor x = Random({40, 16, 16, 8}), filter = Random({3, 3, 8, 4}, 4);
  const Tensor dy = Random({40, 16, 16, 4}, 5);  // 10,240 windows of 72 numbers
  const auto y = RunOp("conv2d", {x, filter}, window);
  const auto dx = RunOp("conv2d_input_grad", {dy, x, filter}, window);
  const auto df = RunOp("conv2d_filter_grad", {dy, x, filter}, window);
  MU_ASSERT_OK(y.status());
  MU_ASSERT_OK(dx.status());
  MU_ASSERT_OK(df.status());
  std::vector<double> sum(filter.elements(), 0.0);
  for (int64_t image = 0; image < 40; ++image) {
    const auto part = [image](const Tensor& all, int64_t channels) {
      const int64_t size = 16 * 16 * channels;
      return Tensor::Of<float>({1, 16, 16, channels},
                               all.flat<float>().subspan(image * size, size));
    };
    const auto one = RunOp("conv2d", {part(x, 8), filter}, window);
    const auto one_dx = RunOp("conv2d_input_grad", {part(dy, 4), part(x, 8), filter}, window);
    const auto one_df = RunOp("conv2d_filter_grad", {part(dy, 4), part(x, 8), filter}, window);
    MU_ASSERT_OK(one.status());
    EXPECT_EQ((*one)[0].flat<float>(), part((*y)[0], 4).flat<float>());
    EXPECT_EQ((*one_dx)[0].flat<float>(), part((*dx)[0], 8).flat<float>());
    for (size_t i = 0; i < sum.size(); ++i) sum[i] += (*one_df)[0].data<float>()[i];
  }
  for (size_t i = 0; i < sum.size(); ++i) {
    EXPECT_NEAR((*df)[0].data<float>()[i], sum[i], 1e-3 + 1e-5 * std::abs(sum[i]));
  }
}

// What a kernel has prepared for one batch must not serve another: the last of an epoch is smaller,
// and images may have any size.
TEST(ImageKernels, EachStepHasItsSizes) {
  const testing::GraphMaker::Attrs window = {{"strides", IntsAttr({2, 1})},
                                             {"padding", StringAttr("same")}};
  const Tensor filter = Random({3, 2, 3, 5}, 4);
  const std::vector<Shape> unknown = {Shape({-1, -1, -1, 3}), Shape({3, 2, 3, 5})};
  const std::vector<Shape> unknown_gradient = {Shape({-1, -1, -1, 5}), unknown[0], unknown[1]};
  Scratch kept, kept_dx, kept_df;
  for (const Shape& shape : {Shape({4, 6, 7, 3}), Shape({3, 6, 7, 3}), Shape({4, 6, 7, 3}),
                             Shape({4, 7, 6, 3}), Shape({0, 7, 6, 3}), Shape({40, 30, 7, 3})}) {
    const Tensor x = Random(shape);
    const auto y = RunOp("conv2d", {x, filter}, window, unknown, &kept);
    const auto fresh = RunOp("conv2d", {x, filter}, window);
    MU_ASSERT_OK(y.status());
    MU_ASSERT_OK(fresh.status());
    EXPECT_EQ((*y)[0].flat<float>(), (*fresh)[0].flat<float>()) << shape.ToString();
    const Tensor dy = Random((*y)[0].shape(), 5);
    for (const auto& [op, scratch] :
         {std::pair("conv2d_input_grad", &kept_dx), std::pair("conv2d_filter_grad", &kept_df)}) {
      const auto gradient = RunOp(op, {dy, x, filter}, window, unknown_gradient, scratch);
      const auto fresh_gradient = RunOp(op, {dy, x, filter}, window);
      MU_ASSERT_OK(gradient.status());
      MU_ASSERT_OK(fresh_gradient.status());
      EXPECT_EQ((*gradient)[0].flat<float>(), (*fresh_gradient)[0].flat<float>())
          << op << shape.ToString();
    }
  }
}

// The order and the bits of a product of all pairs of which the upper triangle is left out.
TEST(InteractionKernel, HasTheBitsOfTheWholeProduct) {
  const int64_t batch = 5, n = 27, dim = 16;
  const Tensor x = Random({batch, n, dim});
  const auto pairs = RunOp("pairwise_interactions", {x});
  MU_ASSERT_OK(pairs.status());
  std::vector<float> whole(batch * n * n);
  AlignedBuffer scratch;
  SmallGemm(false, true, batch, n, n, dim, x.data<float>(), x.data<float>(), whole.data(), scratch);
  const float* pair = (*pairs)[0].data<float>();
  for (int64_t record = 0; record < batch; ++record) {
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t j = 0; j < i; ++j)
        EXPECT_EQ(*pair++, whole[(record * n + i) * n + j]) << i << " " << j;
    }
  }
}

}  // namespace
}  // namespace mu
