// What a step with micro batches returns, against the same step on the whole batch: counts of what
// some slices have none of.
#include <google/protobuf/text_format.h>

#include <functional>
#include <map>

#include "absl/strings/str_cat.h"
#include "tests/coordinator/autodiff/check_gradients.h"

namespace mu {
namespace {

using ::mu::testing::StatusIs;
using ::testing::HasSubstr;

using Value = std::function<Sym(const BatchRef&)>;

// Records of a number x and a list of tags.
class SlicedResultsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    MU_ASSERT_OK_AND_ASSIGN(w_, factory_.CreateVariable({.name = "w", .shape = {}}));
    MU_ASSERT_OK_AND_ASSIGN(t_, factory_.CreateEmbeddingTable({.name = "t", .rows = 9, .dim = 2}));
  }

  absl::StatusOr<pb::FunctionProto> TraceOf(const Value& value, uint32_t micro_batches) {
    pb::DatasetProto data;
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
        "id: 1 name: 'lists' batch_size: 4 csv { columns { name: 'x' } "
        "columns { name: 'tags' kind: ID separator: ' ' } }",
        &data));
    return Trace("step", [&](FunctionBuilder& f) {
      const BatchRef batch = f.NextBatch(Dataset(data));
      f.Minimize(ReduceMean(batch["x"] * w_), {.micro_batches = micro_batches});
      f.Return("y", value(batch));
    });
  }

  // Of four records, of which `tags` says how many tags each has.
  float Run(const Value& value, const std::vector<int32_t>& tags, uint32_t micro_batches) {
    std::vector<int32_t> splits = {0};
    for (const int32_t count : tags) splits.push_back(splits.back() + count);
    Batch batch;
    batch.records = 4;
    batch.names = {"x", "tags.values", "tags.splits"};
    batch.columns = {
        Tensor::Of<float>({4}, {1, -3, 5, 2}),
        Tensor::Of<int64_t>({splits.back()},
                            std::vector<int64_t>(static_cast<size_t>(splits.back()), 7)),
        Tensor::Of<int32_t>({5}, splits)};
    const auto step = TraceOf(value, micro_batches);
    EXPECT_TRUE(step.ok()) << step.status();
    if (!step.ok()) return 0;
    const auto compiled = Compile(*step, factory_.parameters.routing());
    EXPECT_TRUE(compiled.ok()) << compiled.status();
    if (!compiled.ok()) return 0;
    Executor executor(*compiled);
    std::vector<Tensor> returns;
    MU_EXPECT_OK(executor.RunStep({.batch = &batch}, factory_.parameters, &returns));
    if (returns.empty()) return 0;
    return returns[0].dtype() == kInt64 ? static_cast<float>(*returns[0].data<int64_t>())
                                        : *returns[0].data<float>();
  }

  testing::FakeFactory factory_;
  Variable w_;
  EmbeddingTable t_;
};

TEST_F(SlicedResultsTest, CountsOfListsAreThoseOfTheBatch) {
  const auto tags = [](const BatchRef& b) { return Count(b["tags.values"]); };
  struct Case {
    Value value;
    float of_three;  // where the batch has three tags
    float of_none;
  };
  const std::map<std::string, Case> cases = {
      {"count", {tags, 3, 1}},
      {"integer", {[&](const BatchRef& b) { return Cast(tags(b), kInt64); }, 3, 1}},
      {"scaled", {[&](const BatchRef& b) { return -tags(b) * 2.0f; }, -6, -2}},
      {"with another", {[&](const BatchRef& b) { return tags(b) + Count(b["x"]); }, 7, 5}},
      {"less a sum", {[&](const BatchRef& b) { return ReduceSum(b["x"]) - tags(b); }, 2, 4}},
      {"times a mean",
       {[&](const BatchRef& b) { return tags(b) * ReduceMean(b["x"]); }, 3.75f, 1.25f}},
      {"of rows",
       {[&](const BatchRef& b) { return Count(EmbeddingLookup(t_, b["tags.values"])); }, 6, 1}},
      {"of padded lists",
       {[](const BatchRef& b) {
          return Count(PadSequences(b["tags.values"], b["tags.splits"], 2));
        },
        8, 8}}};
  for (const auto& [name, c] : cases) {
    for (const uint32_t micro_batches : {1, 2, 3, 4}) {
      SCOPED_TRACE(absl::StrCat(name, ", slices: ", micro_batches));
      EXPECT_FLOAT_EQ(Run(c.value, {3, 0, 0, 0}, micro_batches), c.of_three);
      EXPECT_FLOAT_EQ(Run(c.value, {0, 1, 0, 2}, micro_batches), c.of_three);
      EXPECT_FLOAT_EQ(Run(c.value, {0, 0, 0, 0}, micro_batches), c.of_none);
    }
  }
}

TEST_F(SlicedResultsTest, ACountOfAListInEachRecordsValueIsRefused) {
  const Value value = [](const BatchRef& b) {
    return ReduceMean(b["x"] * Count(b["tags.values"]));
  };
  MU_EXPECT_OK(TraceOf(value, 1));
  EXPECT_THAT(TraceOf(value, 2),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("the returned value \"y\" depends on a Count of a list's values, "
                                 "which is at least 1 also in a slice")));
}

// Integers that are added up are those that the whole batch gives.
TEST_F(SlicedResultsTest, CastsOfWholeSumsAreThoseOfTheBatch) {
  const std::map<std::string, std::pair<Value, float>> cases = {
      {"positive ones",
       {[](const BatchRef& b) {
          return Cast(ReduceSum(Cast(Greater(b["x"], 0.0f), kFloat32)), kInt64);
        },
        3}},
      {"rounded", {[](const BatchRef& b) { return Cast(ReduceSum(Round(b["x"])), kInt64); }, 5}},
      {"absolute values", {[](const BatchRef& b) { return ReduceSum(Abs(b["x"])); }, 11}}};
  for (const auto& [name, expected] : cases) {
    for (const uint32_t micro_batches : {1, 2, 4})
      EXPECT_EQ(Run(expected.first, {1, 0, 2, 0}, micro_batches), expected.second) << name;
  }
}

}  // namespace
}  // namespace mu
