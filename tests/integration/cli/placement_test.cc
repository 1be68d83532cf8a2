// --placement, and the variables of a report that it takes.
#include "tests/integration/cli/cli_run.h"

namespace mu {
namespace {

using testing::CliTest;
using ::testing::HasSubstr;

class PlacementTest : public CliTest {
 protected:
  int Train(const std::string& name, const std::string& placement, const std::string& report = "") {
    std::vector<std::string> args = {"train",       Job(),    "--job_dir=" + Path(name),
                                     "--workers=1", "--ps=2", "--placement=" + placement};
    if (!report.empty()) args.push_back("--report=" + report);
    return Run(std::move(args));
  }
};

TEST_F(PlacementTest, TakesWhatAnEarlierRunHasReadAndUpdated) {
  ASSERT_EQ(Train("first", "round_robin"), 0) << Output();
  const std::string file = Path("first/report.json");
  const auto variables = Report(file)["variables"];
  ASSERT_FALSE(variables.empty());
  uint64_t table_rows = 0;
  for (const auto& variable : variables) {
    EXPECT_GT(variable["bytes"].get<uint64_t>(), 0u) << variable;
    EXPECT_GT(variable["read_bytes"].get<uint64_t>(), 0u) << variable;
    EXPECT_GT(variable["update_bytes"].get<uint64_t>(), 0u) << variable;
    uint64_t bytes = 0;
    for (const auto& [server, part] : variable["bytes_by_server"].items())
      bytes += part.get<uint64_t>();
    EXPECT_EQ(bytes, variable["bytes"].get<uint64_t>()) << variable;
    if (variable["kind"] == "table") table_rows += variable["rows"].get<uint64_t>();
  }
  EXPECT_GE(table_rows, 30u) << "10 users and 20 items";
  EXPECT_EQ(Train("second", "load=" + file), 0) << Output();
  // What is read is not replaced.
  EXPECT_EQ(Train("third", "load=" + file, file), 2);
  EXPECT_THAT(Output(), HasSubstr("--placement"));
  EXPECT_EQ(Report(file)["variables"], variables);
}

TEST_F(PlacementTest, SaysWhatIsWrong) {
  EXPECT_EQ(Train("run", "by_size"), 2);
  EXPECT_THAT(Output(), HasSubstr("round_robin"));
  EXPECT_EQ(Train("run", "load=" + Path("none.json")), 2);
  EXPECT_THAT(Output(), HasSubstr("none.json"));
}

}  // namespace
}  // namespace mu
