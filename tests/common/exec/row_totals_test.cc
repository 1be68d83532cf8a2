// Gradients of rows over several slices, without a step around them.
#include "common/exec/row_totals.h"

#include <gmock/gmock.h>

#include "common/tensor/tensor.h"
#include "tests/testing/matchers.h"

namespace mu {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::StatusIs;

View ViewOf(const Tensor& tensor) {
  return {tensor.dtype(), tensor.shape(), const_cast<void*>(tensor.raw())};
}

absl::Status Add(RowTotals* totals, const std::vector<int64_t>& ids, const Tensor& gradients,
                 const Tensor& rows, float weight = 1) {
  const Tensor all = Tensor::Of<int64_t>({static_cast<int64_t>(ids.size())}, ids);
  return totals->Add(ViewOf(all), ViewOf(gradients), ViewOf(rows), weight);
}

template <typename T>
std::vector<T> ValuesOf(const View& view) {
  return std::vector<T>(view.as<T>(), view.as<T>() + view.elements());
}

TEST(RowTotalsTest, RowsAreThoseOfTheFirstSlice) {
  RowTotals totals(2, /*keep_rows=*/true);
  for (int step = 0; step < 2; ++step) {
    totals.Begin();
    MU_ASSERT_OK(Add(&totals, {7, 3}, Tensor::Of<float>({2, 2}, {1, 2, 3, 4}),
                     Tensor::Of<float>({2, 2}, {70, 71, 30, 31}), 0.5f));
    MU_ASSERT_OK(Add(&totals, {9, 7}, Tensor::Of<float>({2, 2}, {8, 8, 4, 6}),
                     Tensor::Of<float>({2, 2}, {90, 91, -1, -1}), 0.25f));
    EXPECT_THAT(ValuesOf<int64_t>(totals.ids()), ElementsAre(7, 3, 9));
    EXPECT_THAT(ValuesOf<float>(totals.gradients()), ElementsAre(1.5f, 2.5f, 1.5f, 2, 2, 2));
    EXPECT_THAT(ValuesOf<float>(totals.rows()), ElementsAre(70, 71, 30, 31, 90, 91));
  }
}

TEST(RowTotalsTest, OtherShapesAreRefused) {
  RowTotals totals(2, /*keep_rows=*/true);
  totals.Begin();
  const Tensor good = Tensor::Of<float>({2, 2}, {1, 2, 3, 4});
  for (const Tensor& wrong : {Tensor::Of<float>({2, 1}, {1, 2}), Tensor::Of<float>({1, 2}, {1, 2}),
                              Tensor::Of<float>({4}, {1, 2, 3, 4})}) {
    EXPECT_THAT(Add(&totals, {7, 3}, wrong, good),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("for 2 rows of 2")));
    EXPECT_THAT(Add(&totals, {7, 3}, good, wrong),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("for 2 rows of 2")));
  }
  EXPECT_EQ(totals.ids().elements(), 0);
}

}  // namespace
}  // namespace mu
