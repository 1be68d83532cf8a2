#include "common/sharding/definitions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "common/base/status.h"
#include "common/sharding/routing.h"
#include "tests/testing/matchers.h"

namespace mu {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::StatusIs;

pb::TableProto Table(uint64_t rows, uint32_t dim, uint32_t partitions) {
  pb::TableProto table;
  table.set_name("t");
  table.set_rows(rows);
  table.set_dim(dim);
  table.set_partitions(partitions);
  return table;
}

auto Refused(const std::string& says) {
  return StatusIs(absl::StatusCode::kInvalidArgument,
                  AllOf(HasSubstr("table 't' (id 0): "), HasSubstr(says)));
}

TEST(Definitions, LimitsOfATable) {
  MU_EXPECT_OK(CheckTable(Table(1, 1 << 16, 1)));
  EXPECT_THAT(CheckTable(Table(1, (1 << 16) + 1, 1)),
              Refused("it has 65537 columns (dim), and at most 65536 are possible"));
  MU_EXPECT_OK(CheckTable(Table(1, 1, 1 << 20)));
  EXPECT_THAT(CheckTable(Table(1, 1, (1 << 20) + 1)),
              Refused("it has 1048577 partitions; 1 to 1048576 are possible"));
  EXPECT_THAT(CheckTable(Table(1, 1, 0)), Refused("it has 0 partitions"));
  MU_EXPECT_OK(CheckTable(Table((uint64_t{1} << 62) - 1, 1, 1 << 20)));
  EXPECT_THAT(CheckTable(Table(uint64_t{1} << 62, 1, 1 << 20)),
              Refused("it has 4611686018427387904 rows, and at most 4611686018427387903"));
  EXPECT_THAT(CheckTable(Table(~uint64_t{0}, 1, 1 << 20)), Refused("take ids modulo"));
}

// 2^46 bytes of a partition, which its largest decides.
TEST(Definitions, APartitionOfATableFitsIntoAnAddressSpace) {
  constexpr uint64_t kMost = uint64_t{1} << 44;
  MU_EXPECT_OK(CheckTable(Table(kMost, 1, 1)));
  EXPECT_THAT(CheckTable(Table(kMost + 1, 1, 1)),
              Refused("a partition of it, one of 1, has 17592186044417 rows of 4 bytes with the "
                      "optimizer's slots, and a server can hold at most 17592186044416; give it "
                      "fewer rows or columns, or more partitions"));
  MU_EXPECT_OK(CheckTable(Table(64 * kMost, 1, 64)));
  EXPECT_THAT(CheckTable(Table(64 * kMost + 1, 1, 64)), Refused("one of 64, "));
  MU_EXPECT_OK(CheckTable(Table(kMost / 16, 16, 1)));
  EXPECT_THAT(CheckTable(Table(kMost / 16 + 1, 16, 1)), Refused("rows of 64 bytes"));
  // The product does not fit into 64 bits.
  EXPECT_THAT(CheckTable(Table(uint64_t{1} << 61, 1 << 16, 1)), Refused("it is too large"));
}

TEST(Definitions, SlotsOfATableCount) {
  constexpr uint64_t kMost = uint64_t{1} << 44;
  pb::TableProto table = Table(kMost, 1, 1);
  table.mutable_optimizer()->mutable_adagrad()->set_learning_rate(1);
  EXPECT_THAT(CheckTable(table), Refused("rows of 8 bytes"));
  table.set_rows(kMost / 2);
  MU_EXPECT_OK(CheckTable(table));
  table.mutable_optimizer()->mutable_adam()->set_learning_rate(1);
  EXPECT_THAT(CheckTable(table), Refused("rows of 12 bytes"));
}

}  // namespace
}  // namespace mu
