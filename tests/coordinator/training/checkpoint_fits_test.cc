// Which checkpoints a job's model may take values from, as it is found out before anything starts
// (CheckCheckpointFits).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/env/file.h"
#include "coordinator/cluster/checkpoint_manifest.h"
#include "coordinator/frontend/model_registry.h"
#include "coordinator/frontend/paper_factory.h"
#include "coordinator/training/parameter_rules.h"
#include "coordinator/training/train_job.h"
#include "google/protobuf/text_format.h"
#include "tests/testing/matchers.h"

namespace mu {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::StatusIs;

constexpr absl::StatusCode kInvalid = absl::StatusCode::kInvalidArgument;
constexpr uint32_t kUsualPartitions = 64;

// As many numbers as hidden values and classes: all matrices are square. `product` is a line of the
// model, `rules` are lines of the job.
pb::JobProto Job(const std::string& product = "", const std::string& rules = "") {
  pb::JobProto job;
  const std::string text = absl::StrCat(R"(
      model {
        wide_deep {
          features { column: "x" size: 4 }
          label_column: "label"
          hidden: 4
          classes: 4
          )",
                                        product, R"(
        }
      }
      optimizer { adagrad { learning_rate: 0.1 } }
      )",
                                        rules);
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &job)) << text;
  return job;
}

// A table that says its number of partitions; 0: it says none.
class TableModel : public Model {
 public:
  explicit TableModel(uint32_t partitions) : partitions_(partitions) {}
  absl::Status Create(VariableFactory& factory) override {
    return factory
        .CreateEmbeddingTable({.name = "table", .rows = 10, .dim = 2, .partitions = partitions_})
        .status();
  }
  ModelOutput Build(FunctionBuilder&, const BatchRef&) override { return {}; }
  Task task() const override { return Task::kRegression; }
  std::vector<pb::ColumnSchema> Columns() const override { return {}; }

 private:
  const uint32_t partitions_;
};

class CheckpointFitsTest : public ::testing::Test {
 protected:
  void SetUp() override { MU_ASSERT_OK(directory_); }

  // The directory of a checkpoint as training of the job takes it.
  std::string CheckpointOf(const pb::JobProto& job) {
    PaperFactory paper{Optimizer(job.optimizer())};
    RuledFactory factory(job, &paper);
    const auto model = models_.Create(job.model());
    EXPECT_THAT(model, testing::IsOk());
    if (!model.ok()) return "";
    MU_EXPECT_OK((*model)->Create(factory));
    MU_EXPECT_OK(factory.Check());
    pb::RoutingProto created;
    for (const Variable& variable : paper.variables()) *created.add_variables() = variable.proto();
    for (const EmbeddingTable& table : paper.tables()) {
      *created.add_tables() = table.proto();
      if (table.proto().partitions() == 0)
        created.mutable_tables()->rbegin()->set_partitions(kUsualPartitions);
    }
    created = WithPartitions(std::move(created));
    pb::CheckpointProto manifest;
    manifest.set_format_version(kCheckpointFormat);
    *manifest.mutable_variables() = created.variables();
    *manifest.mutable_tables() = created.tables();
    const std::string folder = JoinPath(directory_->path(), absl::StrCat("ckpt-", ++checkpoints_));
    MU_EXPECT_OK(MakeDirectories(folder));
    MU_EXPECT_OK(WriteManifest(folder, manifest));
    return folder;
  }

  // Whether servers can load it.
  absl::Status Loads(const pb::JobProto& job, const std::string& checkpoint) {
    return CheckCheckpointFits(job, models_, checkpoint, /*loads=*/true);
  }
  // Whether its arrays are those of the model.
  absl::Status Exports(const pb::JobProto& job, const std::string& checkpoint) {
    return CheckCheckpointFits(job, models_, checkpoint, /*loads=*/false);
  }

  ModelRegistry models_ = ModelRegistry::WithBuiltins();

 private:
  absl::StatusOr<TempDirectory> directory_ = TempDirectory::Create("checkpoint_fits");
  int checkpoints_ = 0;
};

// Turned over, a square matrix has the same shape.
TEST_F(CheckpointFitsTest, WeightsThatLieTransposedAreOthers) {
  const pb::JobProto read = Job(), worker = Job("product: 'worker'"),
                     servers = Job("product: 'servers'");
  const std::string of_read = CheckpointOf(read), of_worker = CheckpointOf(worker);
  const auto with_product =
      StatusIs(kInvalid, AllOf(HasSubstr("(4 differences)"),
                               HasSubstr("'deep_1/kernel_by_output' is not in the checkpoint"),
                               HasSubstr("'wide/numbers_by_class' is not in the checkpoint")));
  EXPECT_THAT(Loads(worker, of_read), with_product);
  EXPECT_THAT(Exports(worker, of_read), with_product);
  const auto without =
      StatusIs(kInvalid, AllOf(HasSubstr("(4 differences)"),
                               HasSubstr("'deep_1/kernel' is not in the checkpoint"),
                               HasSubstr("'wide/numbers' is not in the checkpoint")));
  EXPECT_THAT(Loads(read, of_worker), without);
  EXPECT_THAT(Exports(read, of_worker), without);
  MU_EXPECT_OK(Loads(read, of_read));
  MU_EXPECT_OK(Loads(servers, of_worker));
  MU_EXPECT_OK(Exports(servers, of_worker));
}

TEST_F(CheckpointFitsTest, ServersNeedThePartitionsThatWereSaved) {
  const auto cut_into = [](int shards) {
    return Job("", absl::StrCat("parameters { match: 'deep_0/kernel' partitioner { fixed_shards: ",
                                shards, " } }"));
  };
  const std::string whole = CheckpointOf(Job()), two = CheckpointOf(cut_into(2));
  EXPECT_THAT(
      Loads(Job(), two),
      StatusIs(kInvalid, HasSubstr("(1 differences): 'deep_0/kernel' has 1 partitions in the job "
                                   "and 2 in the checkpoint")));
  EXPECT_THAT(Loads(cut_into(2), whole), StatusIs(kInvalid, HasSubstr("2 partitions in the job")));
  EXPECT_THAT(Loads(cut_into(4), two), StatusIs(kInvalid, HasSubstr("4 partitions in the job")));
  MU_EXPECT_OK(Loads(cut_into(2), two));
  // It puts them together.
  MU_EXPECT_OK(Exports(Job(), two));
  MU_EXPECT_OK(Exports(cut_into(2), whole));
}

TEST_F(CheckpointFitsTest, ServersNeedTheSlotsThatWereSaved) {
  const std::string saved = CheckpointOf(Job());
  const auto with_rule = [](const std::string& rule) {
    return Job("", absl::StrCat("parameters { ", rule, " }"));
  };
  pb::JobProto adam = Job(), slower = Job();
  adam.mutable_optimizer()->mutable_adam()->set_learning_rate(0.1f);
  slower.mutable_optimizer()->mutable_adagrad()->set_learning_rate(0.01f);
  const auto of_adam =
      StatusIs(kInvalid, AllOf(HasSubstr("'bias' is "), HasSubstr("adam with slots")));
  EXPECT_THAT(Loads(adam, saved), of_adam);
  const pb::JobProto ruled = with_rule("match: 'bias' optimizer { adam { learning_rate: 0.1 } }");
  EXPECT_THAT(Loads(ruled, saved), of_adam);
  MU_EXPECT_OK(Loads(slower, saved));
  MU_EXPECT_OK(Loads(with_rule("match: '*' trainable: false"), saved)) << "needs none";
  MU_EXPECT_OK(Exports(adam, saved));
  MU_EXPECT_OK(Exports(ruled, saved));
}

TEST_F(CheckpointFitsTest, ATableThatSaysNoNumberOfPartitionsTakesTheCheckpoints) {
  const auto with = [&](const std::string& name, uint32_t partitions) {
    MU_EXPECT_OK(models_.RegisterJson(
        name, [partitions](const std::string&) -> absl::StatusOr<std::unique_ptr<Model>> {
          return std::make_unique<TableModel>(partitions);
        }));
    pb::JobProto job;
    job.mutable_model()->mutable_custom()->set_name(name);
    job.mutable_optimizer()->mutable_sgd()->set_learning_rate(0.1f);
    return job;
  };
  const pb::JobProto any = with("any", 0), eight = with("eight", 8);
  const std::string of_any = CheckpointOf(any), of_eight = CheckpointOf(eight);
  MU_EXPECT_OK(Loads(any, of_any));
  MU_EXPECT_OK(Loads(any, of_eight));
  MU_EXPECT_OK(Loads(eight, of_eight));
  EXPECT_THAT(Loads(eight, of_any), StatusIs(kInvalid, HasSubstr("in 8 partitions")));
  MU_EXPECT_OK(Exports(eight, of_any));
}

}  // namespace
}  // namespace mu
