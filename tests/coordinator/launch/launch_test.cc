#include "coordinator/launch/launch.h"

#include <gmock/gmock.h>

#include <map>
#include <string>
#include <vector>

#include "common/env/file.h"
#include "coordinator/frontend/layers.h"
#include "tests/testing/certificates.h"
#include "tests/testing/matchers.h"

namespace mu {
namespace {

using ::mu::testing::StatusIs;
using ::testing::HasSubstr;

// Their calls are in the clear, so what would have others believe the contrary is refused.
TEST(Launch, LocalAndInProcessRefuseCertificatesForTheirCalls) {
  const testing::Certificates certificates;
  MU_ASSERT_OK_AND_ASSIGN(const TempDirectory directory, TempDirectory::Create("launch_test"));
  ClusterOptions options;
  options.job_dir = JoinPath(directory.path(), "run");
  options.tls = certificates.Of(pb::ROLE_COORDINATOR);
  const auto refused = StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("in the clear"));
  EXPECT_THAT(InProcess(options).status(), refused);
  EXPECT_THAT(Local(options).status(), refused);
  EXPECT_FALSE(FileExists(options.job_dir));
}

TEST(Launch, LocalAndInProcessListenOffLoopbackOnlyIfToldTo) {
  MU_ASSERT_OK_AND_ASSIGN(const TempDirectory directory, TempDirectory::Create("launch_test"));
  ClusterOptions options;
  options.job_dir = JoinPath(directory.path(), "run");
  options.listen = "0.0.0.0:0";
  const auto refused = StatusIs(absl::StatusCode::kInvalidArgument,
                                HasSubstr("neither encrypted nor authenticated"));
  EXPECT_THAT(InProcess(options).status(), refused);
  EXPECT_THAT(Local(options).status(), refused);
  EXPECT_FALSE(FileExists(options.job_dir));
  options.insecure = true;
  MU_EXPECT_OK(InProcess(options).status());
}

// The certificates are for this port, not for calls.
TEST(Launch, CertificatesMayBeForMetricsOffLoopback) {
  const testing::Certificates certificates;
  ClusterOptions options;
  options.tls = certificates.Of(pb::ROLE_COORDINATOR);
  options.http = "0.0.0.0:0";
  MU_ASSERT_OK_AND_ASSIGN(const auto coordinator, InProcess(options));
  EXPECT_THAT(coordinator->http(), ::testing::StartsWith("https://"));
}

// What one coordinator has under a name or an id may be larger than what the other one has.
TEST(Launch, HandlesOfAnotherCoordinatorAreRefused) {
  MU_ASSERT_OK_AND_ASSIGN(const auto other, InProcess({}));
  MU_ASSERT_OK_AND_ASSIGN(const Variable small,
                          other->CreateVariable({.name = "w", .shape = {10}}));
  MU_ASSERT_OK_AND_ASSIGN(const EmbeddingTable narrow,
                          other->CreateEmbeddingTable({.name = "t", .rows = 10, .dim = 1}));
  MU_ASSERT_OK_AND_ASSIGN(const auto coordinator, InProcess({}));
  Coordinator& c = *coordinator;
  MU_ASSERT_OK_AND_ASSIGN(
      const Variable large,
      c.CreateVariable({.name = "w", .shape = {10, 1000}, .initializer = Constant{2}}));
  MU_ASSERT_OK_AND_ASSIGN(const EmbeddingTable wide,
                          c.CreateEmbeddingTable({.name = "t", .rows = 10, .dim = 1000}));
  const auto refused = [](absl::string_view what) {
    return StatusIs(absl::StatusCode::kInvalidArgument,
                    HasSubstr(absl::StrCat(what, "' was not created by this coordinator")));
  };
  const Tensor value(kFloat32, Shape{10}), row(kFloat32, Shape{1, 1});
  EXPECT_THAT(c.Read(small).status(), refused("variable 'w"));
  EXPECT_THAT(c.ReadRows(small, 0, 10).status(), refused("variable 'w"));
  EXPECT_THAT(c.Assign(small, value), refused("variable 'w"));
  EXPECT_THAT(c.AssignRows(small, {1}, row), refused("variable 'w"));
  EXPECT_THAT(c.ReadRows(narrow, {1}).status(), refused("table 't"));
  EXPECT_THAT(c.AssignRows(narrow, {1}, row), refused("table 't"));
  EXPECT_THAT(c.ReadTable(
                  narrow, [](const Coordinator::TableRows&) { return absl::OkStatus(); }, 1),
              refused("table 't"));
  MU_ASSERT_OK_AND_ASSIGN(const Tensor same, c.Read(large));
  EXPECT_THAT(same.flat<float>(), ::testing::Each(2.0f));
  MU_EXPECT_OK(c.ReadRows(wide, {1}).status());
}

TEST(Launch, PartitionsAreWhereThePlacementSays) {
  ClusterOptions options;
  options.ps = 2;
  options.placement = PlacementFunction(
      [](const PlacementRequest& request) { return request.partition == 0 ? 1u : 0u; });
  MU_ASSERT_OK_AND_ASSIGN(const auto coordinator, InProcess(options));
  MU_ASSERT_OK_AND_ASSIGN(
      const Variable variable,
      coordinator->CreateVariable(
          {.name = "v", .shape = {6}, .initializer = Constant{2}, .partitioner = FixedShards{3}}));
  MU_ASSERT_OK_AND_ASSIGN(const Tensor value, coordinator->Read(variable));
  EXPECT_THAT(value.flat<float>(), ::testing::Each(2.0f));
  MU_ASSERT_OK_AND_ASSIGN(const std::vector<ParameterInfo> infos, coordinator->Variables());
  std::vector<uint32_t> servers;
  for (const PartitionInfo& partition : infos.at(0).partitions) {
    servers.push_back(partition.server);
    EXPECT_EQ(partition.load.reads, 1u) << "the server has it";
  }
  EXPECT_THAT(servers, ::testing::ElementsAre(1, 0, 0));
}

TEST(Launch, VariablesThatNameNoPartitionerHaveTheDefault) {
  MU_ASSERT_OK_AND_ASSIGN(const auto coordinator,
                          InProcess({.default_partitioner = FixedShards{3}}));
  MU_ASSERT_OK_AND_ASSIGN(const Variable variable,
                          coordinator->CreateVariable({.name = "default", .shape = {6}}));
  MU_ASSERT_OK(coordinator->CreateVariable({.name = "short", .shape = {2}}));
  MU_ASSERT_OK(
      coordinator->CreateVariable({.name = "own", .shape = {6}, .partitioner = FixedShards{2}}));
  MU_ASSERT_OK(coordinator->CreateVariable(
      {.name = "automatic", .shape = {6}, .partitioner = AutomaticPartitioner{}}));
  MU_ASSERT_OK(coordinator->CreateEmbeddingTable({.name = "table", .rows = 6, .dim = 2}));
  MU_ASSERT_OK_AND_ASSIGN(const Dense layer, Dense::Create(*coordinator, "fc", 4, 5));
  MU_ASSERT_OK_AND_ASSIGN(
      const Dense cut, Dense::Create(*coordinator, "cut", 4, 5, {.partitioner = FixedShards{4}}));
  MU_ASSERT_OK(coordinator->Read(variable));
  MU_ASSERT_OK_AND_ASSIGN(const std::vector<ParameterInfo> infos, coordinator->Variables());
  std::map<std::string, size_t> partitions;
  for (const ParameterInfo& info : infos) partitions[info.name] = info.partitions.size();
  EXPECT_THAT(partitions, ::testing::UnorderedElementsAre(
                              ::testing::Pair("default", 3), ::testing::Pair("short", 2),
                              ::testing::Pair("own", 2), ::testing::Pair("automatic", 1),
                              ::testing::Pair("table", 64), ::testing::Pair("fc/kernel", 3),
                              ::testing::Pair("fc/bias", 3), ::testing::Pair("cut/kernel", 4),
                              ::testing::Pair("cut/bias", 3)));
  MU_ASSERT_OK_AND_ASSIGN(const auto none, InProcess({.default_partitioner = MinSize{0}}));
  EXPECT_THAT(none->CreateVariable({.name = "v", .shape = {6}}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("above 0")));
}

}  // namespace
}  // namespace mu
