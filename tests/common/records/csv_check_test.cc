#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/records/csv_parser.h"
#include "tests/testing/matchers.h"

namespace mu {
namespace {

using ::testing::HasSubstr;
using testing::StatusIs;

TEST(CheckCsvTest, AFieldIsNamedOnlyWhereAHeaderNamesFields) {
  muster::CsvProto csv;
  csv.add_columns()->set_name("x");  // at index 0
  MU_EXPECT_OK(CheckCsv(csv));
  csv.mutable_columns(0)->set_field("y");
  EXPECT_THAT(CheckCsv(csv),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("give its index instead")));
  csv.set_header(true);
  MU_EXPECT_OK(CheckCsv(csv));
}

}  // namespace
}  // namespace mu
