#include "coordinator/training/job_data.h"

#include <gtest/gtest.h>

namespace mu {
namespace {

class TwoTables : public Model {
 public:
  absl::Status Create(VariableFactory&) override { return absl::OkStatus(); }
  ModelOutput Build(FunctionBuilder&, const BatchRef&) override { return {}; }
  Task task() const override { return Task::kRegression; }
  std::vector<pb::ColumnSchema> Columns() const override { return {}; }
  std::map<std::string, int64_t> IdBounds() const override {
    return {{"free", 10}, {"loose", 10}, {"tight", 10}, {"text", 10}};
  }
};

TEST(BoundIdsTest, IdsWithoutABoundOrWithALargerOneGetTheModels) {
  pb::DatasetProto dataset;
  const auto add = [&](const char* name, pb::CsvColumnProto::Kind kind, int64_t buckets) {
    pb::CsvColumnProto* column = dataset.mutable_csv()->add_columns();
    column->set_name(name);
    column->set_kind(kind);
    column->set_buckets(buckets);
  };
  add("free", pb::CsvColumnProto::ID, 0);
  add("loose", pb::CsvColumnProto::ID, 11);
  add("tight", pb::CsvColumnProto::ID, 9);
  add("text", pb::CsvColumnProto::HASH, 100);
  add("other", pb::CsvColumnProto::ID, 0);
  BoundIds(TwoTables(), &dataset);
  const int64_t expected[] = {10, 10, 9, 100, 0};
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(dataset.csv().columns(i).buckets(), expected[i]) << dataset.csv().columns(i).name();
  }
}

}  // namespace
}  // namespace mu
