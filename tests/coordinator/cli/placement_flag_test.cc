#include "coordinator/cli/placement_flag.h"

#include <gmock/gmock.h>

#include "common/env/file.h"
#include "coordinator/cli/report.h"
#include "tests/testing/matchers.h"

namespace mu {
namespace {

using ::testing::AllOf;
using testing::HasCode;
using ::testing::HasSubstr;
using testing::StatusIs;

class PlacementFlagTest : public ::testing::Test {
 protected:
  void SetUp() override {
    MU_ASSERT_OK_AND_ASSIGN(TempDirectory made, TempDirectory::Create("placement"));
    directory_.emplace(std::move(made));
  }
  absl::StatusOr<Placement> LoadOf(const std::string& text) {
    const std::string file = directory_->path() + "/report.json";
    MU_EXPECT_OK(WriteFileAtomic(file, text));
    return ParsePlacement("load=" + file);
  }
  std::optional<TempDirectory> directory_;
};

TEST_F(PlacementFlagTest, ByName) {
  MU_ASSERT_OK_AND_ASSIGN(const Placement none, ParsePlacement(""));
  EXPECT_TRUE(std::holds_alternative<PlaceByBytes>(none));
  MU_ASSERT_OK_AND_ASSIGN(const Placement bytes, ParsePlacement("bytes"));
  EXPECT_TRUE(std::holds_alternative<PlaceByBytes>(bytes));
  MU_ASSERT_OK_AND_ASSIGN(const Placement round, ParsePlacement("round_robin"));
  EXPECT_TRUE(std::holds_alternative<PlaceRoundRobin>(round));
  for (const char* bad : {"load", "load=", "roundrobin", "bytes,"}) {
    EXPECT_THAT(ParsePlacement(bad),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("round_robin")))
        << bad;
  }
}

TEST_F(PlacementFlagTest, ByTheLoadOfAReport) {
  RunReport report;
  report.variables = {{"ids", true, {.read_bytes = 70, .update_bytes = 50}, {}},
                      {"bias", false, {}, {}}};
  MU_ASSERT_OK_AND_ASSIGN(const Placement placement, LoadOf(ReportToJson(report)));
  const auto* load = std::get_if<PlaceByLoad>(&placement);
  ASSERT_NE(load, nullptr);
  EXPECT_EQ(load->load, (std::map<std::string, double>{{"ids", 120}, {"bias", 0}}));
}

TEST_F(PlacementFlagTest, SaysWhatIsWrongWithAReport) {
  EXPECT_THAT(ParsePlacement("load=/no/such.json"), HasCode(absl::StatusCode::kNotFound));
  for (const char* text :
       {"", "{", "[]", "{}", R"({"variables": []})", R"({"variables": [7]})",
        R"({"variables": [{"name": "a", "read_bytes": -1, "update_bytes": 1}]})",
        R"({"variables": [{"name": "a", "read_bytes": 1}]})",
        R"({"variables": [{"name": "a", "read_bytes": 0, "update_bytes": 0}]})"}) {
    EXPECT_THAT(LoadOf(text), StatusIs(absl::StatusCode::kInvalidArgument,
                                       AllOf(HasSubstr("report.json"), HasSubstr("--report"))))
        << text;
  }
}

}  // namespace
}  // namespace mu
