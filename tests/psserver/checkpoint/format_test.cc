// A checkpoint read by another program, which knows only docs/checkpoint_format.md.
#include <google/protobuf/util/json_util.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <nlohmann/json.hpp>
#include <numeric>

#include "common/env/file.h"
#include "tests/psserver/cluster.h"
#include "tests/testing/matchers.h"

namespace mu {
namespace {

using Json = nlohmann::json;

// Without the large variable: the reader sums bytes one by one.
pb::RoutingProto ModelOf(uint32_t servers) {
  pb::RoutingProto model = testing::SmallModel(servers);
  model.mutable_variables(5)->mutable_shape()->set_dims(0, 30);
  model.mutable_variables(5)->clear_partition_starts();
  model.mutable_variables(5)->clear_placement();
  model.mutable_variables(5)->mutable_partitioner()->set_fixed_shards(3);
  MU_CHECK(PlaceAll(&model).ok());
  return model;
}

struct Output {
  int code = -1;
  std::string text;
};

Output ReadByScript(const std::string& directory) {
  Output output;
  const std::string command =
      absl::StrCat("python3 ", MUSTER_READ_CHECKPOINT, " ", directory, " 2>&1");
  FILE* const pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return output;
  char buffer[4096];
  while (const size_t n = fread(buffer, 1, sizeof(buffer), pipe)) output.text.append(buffer, n);
  output.code = pclose(pipe);
  return output;
}

TEST(CheckpointFormatTest, AReaderOfFiftyLinesFindsTheSameValues) {
  constexpr uint32_t kServers = 2;
  testing::PsCluster cluster(kServers, ModelOf(kServers));
  MU_ASSERT_OK(cluster.Configure());
  PsSession session = cluster.Session(5);
  const std::vector<int64_t> ids = {0, 3, 64, 131, 499};
  const std::vector<float> items(ids.size() * 16, 0.25f), users(ids.size() * 4, -2),
      weights(30, 0.5f);
  const int64_t one = 1;
  for (uint32_t step = 0; step < 3; ++step) {
    session.BeginStep(step);
    const VariableWrite writes[] = {{0, VariableWrite::kGradient, weights.data()},
                                    {2, VariableWrite::kAssignAdd, &one}};
    const RowsWrite rows[] = {{100, ids, items.data()}, {101, ids, users.data()}};
    MU_ASSERT_OK(session.Push(writes, rows));
  }
  MU_ASSERT_OK_AND_ASSIGN(TempDirectory directory, TempDirectory::Create("muster_format_test"));
  MU_ASSERT_OK_AND_ASSIGN(const auto files,
                          cluster.admin().Save(cluster.context(), directory.path()));
  pb::CheckpointProto manifest;
  manifest.set_format_version(1);
  for (const pb::CheckpointFileProto& file : files) *manifest.add_files() = file;
  const pb::RoutingProto& routing = cluster.client().view()->routing->proto();
  *manifest.mutable_variables() = routing.variables();
  *manifest.mutable_tables() = routing.tables();
  std::string json;
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  ASSERT_TRUE(google::protobuf::util::MessageToJsonString(manifest, &json, options).ok());
  MU_ASSERT_OK(WriteFileAtomic(JoinPath(directory.path(), "manifest.json"), json));

  const Output output = ReadByScript(directory.path());
  ASSERT_EQ(output.code, 0) << output.text;
  const Json found = Json::parse(output.text);
  for (const pb::VariableProto& variable : routing.variables()) {
    MU_ASSERT_OK_AND_ASSIGN(const Tensor value,
                            cluster.admin().ReadVariable(cluster.context(), variable.name()));
    const Json& read = found["variables"][variable.name()];
    ASSERT_EQ(read.size(), static_cast<size_t>(value.elements())) << variable.name();
    for (int64_t i = 0; i < value.elements(); ++i) {
      const double expected = variable.dtype() == pb::FLOAT32 ? value.data<float>()[i]
                              : variable.dtype() == pb::INT64
                                  ? static_cast<double>(value.data<int64_t>()[i])
                                  : value.data<int32_t>()[i];
      ASSERT_EQ(read[static_cast<size_t>(i)].get<double>(), expected) << variable.name();
    }
  }
  std::vector<float> item_values(ids.size() * 16), user_values(ids.size() * 4);
  const RowsRead reads[] = {{100, ids, item_values.data()}, {101, ids, user_values.data()}};
  PsSession reader = cluster.Session(0, /*read_only=*/true);
  MU_ASSERT_OK(reader.Pull({}, reads));
  for (size_t i = 0; i < ids.size(); ++i) {
    const std::vector<float> item = found["tables"]["items"][std::to_string(ids[i])];
    const std::vector<float> user = found["tables"]["users"][std::to_string(ids[i])];
    EXPECT_EQ(item,
              std::vector<float>(item_values.begin() + i * 16, item_values.begin() + (i + 1) * 16));
    EXPECT_EQ(user,
              std::vector<float>(user_values.begin() + i * 4, user_values.begin() + (i + 1) * 4));
  }
  EXPECT_EQ(found["tables"]["items"].size(), ids.size()) << "and no other rows";
  EXPECT_EQ(found["applied"], Json::array({{5, 0, 0, 3}, {5, 0, 0, 3}}))
      << "3 steps of function 5, on each server";

  const std::string path = JoinPath(directory.path(), files[1].name());
  MU_ASSERT_OK_AND_ASSIGN(std::string bytes, ReadFile(path));
  bytes[bytes.size() / 2] ^= 4;
  MU_ASSERT_OK(WriteFileAtomic(path, bytes));
  const Output damaged = ReadByScript(directory.path());
  EXPECT_NE(damaged.code, 0);
  EXPECT_NE(damaged.text.find(files[1].name() + " is damaged"), std::string::npos) << damaged.text;
}

}  // namespace
}  // namespace mu
