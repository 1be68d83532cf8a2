#include "common/client/value_pieces.h"

#include <limits>
#include <numeric>
#include <vector>

#include "tests/testing/fake_parameters.h"
#include "tests/testing/matchers.h"

namespace mu {
namespace {

using ::testing::ElementsAre;
using testing::FakeParameterAccess;

// Notes what each pull asks for, and fails from one on.
class NotingAccess final : public FakeParameterAccess {
 public:
  absl::Status Pull(absl::Span<const VariableRead> variables,
                    absl::Span<const RowsRead> rows) override {
    for (const VariableRead& read : variables) asked.push_back({read.first_row, read.rows});
    for (const RowsRead& read : rows)
      asked.push_back({read.ids.front(), static_cast<int64_t>(read.ids.size())});
    if (static_cast<int>(asked.size()) == fails_at) return absl::UnavailableError("lost");
    return FakeParameterAccess::Pull(variables, rows);
  }

  std::vector<std::pair<int64_t, int64_t>> asked;  // first row or id, and how many
  int fails_at = 0;
};

std::vector<float> Numbers(size_t count) {
  std::vector<float> numbers(count);
  std::iota(numbers.begin(), numbers.end(), 0.0f);
  return numbers;
}

TEST(ValuePieces, APieceHasAsManyRowsAsFitAndAtLeastOne) {
  EXPECT_EQ(RowsInPiece(10, 100), 10);
  EXPECT_EQ(RowsInPiece(11, 100), 9);
  EXPECT_EQ(RowsInPiece(101, 100), 1);
  EXPECT_EQ(RowsInPiece(10, 0), 1);
  EXPECT_EQ(RowsInPiece(0, 100), 100) << "rows without columns";
  const int64_t most = RowsInPiece(1, std::numeric_limits<uint64_t>::max());
  EXPECT_GT(most, int64_t{1} << 32);
  EXPECT_LT(most, std::numeric_limits<int64_t>::max() / 4) << "rows are added to it";
}

TEST(ValuePieces, RowsOfAVariableArePulledInTheirOrder) {
  NotingAccess access;
  const uint32_t id = access.AddVariable("w", Tensor::Of<float>({7, 2}, Numbers(14)));
  std::vector<float> out(12);
  // 25 bytes: three rows of 8.
  MU_ASSERT_OK(PullInPieces(&access, VariableRead{id, out.data(), 1, 6}, 8, 25));
  EXPECT_THAT(access.asked, ElementsAre(std::pair(1, 3), std::pair(4, 3)));
  EXPECT_THAT(out, ElementsAre(2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13));
  access.asked.clear();
  MU_ASSERT_OK(PullInPieces(&access, VariableRead{id, out.data(), 0, 6}, 8, 40));
  EXPECT_THAT(access.asked, ElementsAre(std::pair(0, 5), std::pair(5, 1)));
  access.asked.clear();
  MU_ASSERT_OK(PullInPieces(&access, VariableRead{id, out.data(), 7, 0}, 8, 40));
  MU_ASSERT_OK(PullInPieces(&access, VariableRead{id, nullptr, 0, int64_t{1} << 49}, 0, 40));
  EXPECT_THAT(access.asked, ElementsAre()) << "there is nothing to pull";
}

TEST(ValuePieces, RowsOfATableArePulledInTheOrderOfTheirIds) {
  NotingAccess access;
  const uint32_t id = access.AddTable("t", 2, Numbers(14));
  const std::vector<int64_t> ids = {6, 0, 3, 1, 5};
  std::vector<float> out(10);
  // Two rows of 8 and their ids.
  MU_ASSERT_OK(PullInPieces(&access, RowsRead{id, ids, out.data()}, 2, 47));
  EXPECT_THAT(access.asked, ElementsAre(std::pair(6, 2), std::pair(3, 2), std::pair(5, 1)));
  EXPECT_THAT(out, ElementsAre(12, 13, 0, 1, 6, 7, 2, 3, 10, 11));
}

TEST(ValuePieces, TheFirstErrorEndsThem) {
  NotingAccess access;
  const uint32_t w = access.AddVariable("w", Tensor::Of<float>({4, 1}, Numbers(4)));
  const uint32_t t = access.AddTable("t", 1, Numbers(4));
  const std::vector<int64_t> ids = {0, 1, 2, 3};
  std::vector<float> out(4);
  access.fails_at = 2;
  EXPECT_THAT(PullInPieces(&access, VariableRead{w, out.data(), 0, 4}, 4, 4),
              testing::HasCode(absl::StatusCode::kUnavailable));
  EXPECT_EQ(access.asked.size(), 2u);
  access.asked.clear();
  EXPECT_THAT(PullInPieces(&access, RowsRead{t, ids, out.data()}, 1, 12),
              testing::HasCode(absl::StatusCode::kUnavailable));
  EXPECT_EQ(access.asked.size(), 2u);
}

}  // namespace
}  // namespace mu
