// What a step with micro batches returns, against the same step on the whole batch: counts of what
// some slices have none of, products and quotients of sums and means.
#include <google/protobuf/text_format.h>

#include <cmath>
#include <functional>
#include <map>

#include "absl/strings/str_cat.h"
#include "coordinator/frontend/neural_ops.h"
#include "tests/coordinator/autodiff/check_gradients.h"

namespace mu {
namespace {

using ::mu::testing::StatusIs;
using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;

using Value = std::function<Sym(const BatchRef&)>;

Sym Numbers(const BatchRef& batch, const std::string& list) {
  return Cast(batch[list + ".values"], kFloat32);
}

constexpr char kEntangled[] =
    "the returned value \"y\" adds up values of records that have a mean or sum over the batch's "
    "records in them";

// A function of a batch with positive values, drawn by a seed. It grows with the count of a list
// (Draw) or with the records (DrawSum), so that nothing but the whole batch's value is right.
class RandomValue {
 public:
  RandomValue(uint64_t seed, const BatchRef& batch) : random_(seed), batch_(batch) {}

  Sym Draw() {
    const Sym count = Count(List());
    if (random_.Below(2) == 0) {
      const Sym mean = Mean(2);
      return mean * count;
    }
    const Sym sum = Sum(2);
    return random_.Below(2) == 0 ? sum + count : (sum + count) / Count(batch_["x"]);
  }

  Sym DrawSum() {
    if (random_.Below(2) == 0) return Sum(2);
    const Sym mean = Mean(2);
    return mean * Count(batch_["x"]);
  }

 private:
  Sym List() { return Numbers(batch_, random_.Below(2) == 0 ? "tags" : "more"); }

  // Of degree 0.
  Sym Mean(int depth) {
    const Sym list = List();
    switch (random_.Below(depth > 0 ? 9 : 6)) {
      case 0:
        return ReduceMean(list);
      case 1:
        return ReduceMean(batch_["x"]);
      case 2: {
        const Sym sum = ReduceSum(List());
        return sum / Count(list);
      }
      case 3:
        return Count(list) / Count(batch_["x"]);
      case 4:
        return MeanSquaredError(list, list * 0.5f);
      case 5:
        return ReduceSum(list / Count(list));  // does not follow from sums
      case 6: {
        const Sym mean = Mean(depth - 1);
        return mean + Mean(depth - 1);
      }
      case 7: {
        const Sym mean = Mean(depth - 1);
        return mean * Mean(depth - 1);
      }
      default:
        return Sqrt(Square(Mean(depth - 1)) + 1.0f);
    }
  }

  // Of degree 1.
  Sym Sum(int depth) {
    const Sym list = List();
    switch (random_.Below(depth > 0 ? 8 : 5)) {
      case 0:
        return Count(list);
      case 1:
        return ReduceSum(list);
      case 2:
        return ReduceSum(batch_["x"]);
      case 3:
        return SumOfSquares({list});
      case 4:
        return ReduceMean(list * Count(list));  // a count in each value
      case 5: {
        const Sym sum = Sum(depth - 1);
        return sum + Sum(depth - 1);
      }
      case 6: {
        const Sym mean = Mean(depth - 1);
        return mean * Sum(depth - 1);
      }
      default:
        return Sum(depth - 1) + Count(batch_["x"]);
    }
  }

  SplitMix random_;
  const BatchRef& batch_;
};

// Records of a number x and two lists, tags and more.
class SlicedResultsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    MU_ASSERT_OK_AND_ASSIGN(w_, factory_.CreateVariable({.name = "w", .shape = {}}));
    MU_ASSERT_OK_AND_ASSIGN(t_, factory_.CreateEmbeddingTable({.name = "t", .rows = 16, .dim = 2}));
  }

  absl::StatusOr<pb::FunctionProto> TraceOf(const Value& value, uint32_t micro_batches) {
    pb::DatasetProto data;
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
        "id: 1 name: 'lists' batch_size: 4 csv { columns { name: 'x' } "
        "columns { name: 'tags' kind: ID separator: ' ' } "
        "columns { name: 'more' kind: ID separator: ' ' } }",
        &data));
    return Trace("step", [&](FunctionBuilder& f) {
      const BatchRef batch = f.NextBatch(Dataset(data));
      f.Minimize(ReduceMean(batch["x"] * w_), {.micro_batches = micro_batches});
      f.Return("y", value(batch));
    });
  }

  static void AddList(const std::string& name, const std::vector<int32_t>& counts, Batch* batch) {
    constexpr int64_t kValues[] = {10, 2, 2, 2, 7, 1, 5, 3};
    std::vector<int32_t> splits = {0};
    for (const int32_t count : counts) splits.push_back(splits.back() + count);
    std::vector<int64_t> values;
    for (int32_t i = 0; i < splits.back(); ++i) values.push_back(kValues[i % 8]);
    batch->names.push_back(name + ".values");
    batch->columns.push_back(Tensor::Of<int64_t>({splits.back()}, values));
    batch->names.push_back(name + ".splits");
    batch->columns.push_back(Tensor::Of<int32_t>({5}, splits));
  }

  // Of four records, of which `tags` and `more` say how many values of these each has.
  float Run(const Value& value, const std::vector<int32_t>& tags, uint32_t micro_batches,
            const std::vector<int32_t>& more = {0, 0, 2, 0}) {
    Batch batch;
    batch.records = 4;
    batch.names = {"x"};
    batch.columns = {Tensor::Of<float>({4}, {1, -3, 5, 2})};
    AddList("tags", tags, &batch);
    AddList("more", more, &batch);
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
  const auto rows = [this](const BatchRef& b) { return EmbeddingLookup(t_, b["tags.values"]); };
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
      {"of rows", {[&](const BatchRef& b) { return Count(rows(b)); }, 6, 1}},
      {"times a row's size",
       {[&](const BatchRef& b) { return Count(rows(b), {1}) * tags(b); }, 6, 2}},
      {"times its mean",
       {[&](const BatchRef& b) { return tags(b) * ReduceMean(Numbers(b, "tags")); }, 14, 0}},
      {"times its mean and another",
       {[&](const BatchRef& b) {
          return tags(b) * (ReduceMean(Numbers(b, "tags")) + ReduceMean(b["x"]));
        },
        17.75f, 1.25f}},
      {"times the mean of another list",
       {[&](const BatchRef& b) { return tags(b) * ReduceMean(Numbers(b, "more")); }, 18, 6}},
      {"times its means by column",
       {[&](const BatchRef& b) {
          const Sym twice = Tile(ExpandDims(Numbers(b, "tags"), {1}), {1, 2});
          return tags(b) * ReduceSum(ReduceMean(twice, {0}));
        },
        28, 0}},
      {"times its squared error",
       {[&](const BatchRef& b) {
          const Sym values = Numbers(b, "tags");
          return tags(b) * MeanSquaredError(values, values * 0.5f);
        },
        27, 0}},
      {"times its mean by a sum",
       {[&](const BatchRef& b) {
          const Sym values = Numbers(b, "tags");
          return tags(b) * MaskedMean(values, Less(values, 5.0f));
        },
        6, 0}},
      {"for each record",
       {[&](const BatchRef& b) { return tags(b) / Count(b["x"]); }, 0.75f, 0.25f}},
      {"dividing a count",
       {[&](const BatchRef& b) { return Count(b["x"]) / tags(b); }, 4.0f / 3, 4}},
      {"dividing a sum",
       {[&](const BatchRef& b) { return ReduceSum(b["x"]) / tags(b); }, 5.0f / 3, 5}},
      {"dividing its sum",
       {[&](const BatchRef& b) { return ReduceSum(Numbers(b, "tags")) / tags(b); }, 14.0f / 3, 0}},
      {"by another", {[&](const BatchRef& b) { return Count(rows(b)) / tags(b); }, 2, 1}},
      {"root",
       {[&](const BatchRef& b) { return Sqrt(tags(b) / Count(b["x"])); }, std::sqrt(0.75f), 0.5f}},
      {"divided twice",
       {[&](const BatchRef& b) { return Count(b["x"]) / (Count(b["x"]) / tags(b)); }, 3, 1}},
      {"inverse",
       {[&](const BatchRef& b) { return Pow(Count(b["x"]) / tags(b), -1.0f); }, 0.75f, 0.25f}},
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

// A loss is often added up so: as its mean times its count. Slices of 1 and 3 values.
TEST_F(SlicedResultsTest, ACountTimesTheListsMeanIsItsSum) {
  const Value value = [](const BatchRef& b) {
    return Count(b["tags.values"]) * ReduceMean(Numbers(b, "tags"));
  };
  for (const uint32_t micro_batches : {1, 2, 4})
    EXPECT_FLOAT_EQ(Run(value, {1, 0, 3, 0}, micro_batches), 16) << micro_batches;
}

TEST_F(SlicedResultsTest, ACountOfAListInEachRecordsValueIsRefused) {
  const std::string depends =
      "the returned value \"y\" depends on a Count of a list's values, which is at least 1 also in "
      "a slice";
  const std::map<std::string, std::pair<Value, std::string>> cases = {
      {"sum",
       {[](const BatchRef& b) { return ReduceMean(b["x"] * Count(b["tags.values"])); },
        "what has an entry for each record"}},
      {"mean",
       {[](const BatchRef& b) {
          return ReduceMean(b["x"] * (Count(b["tags.values"]) / Count(b["x"])));
        },
        "what has an entry for each record"}},
      {"beside a list's mean",
       {[](const BatchRef& b) {
          const Sym values = Numbers(b, "tags");
          return Count(values) * ReduceSum(values / Count(values));
        },
        "a \"reduce_sum\" of a list that is neither"}}};
  for (const auto& [name, refused] : cases) {
    SCOPED_TRACE(name);
    MU_EXPECT_OK(TraceOf(refused.first, 1));
    EXPECT_THAT(TraceOf(refused.first, 2),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         AllOf(HasSubstr(depends), HasSubstr(refused.second))));
  }
}

// A count that is divided by itself, as in the variance of a sample, does not grow with the list.
TEST_F(SlicedResultsTest, ACountDividedByItselfMayBeInEachValue) {
  const Value value = [](const BatchRef& b) {
    const Sym count = Count(b["tags.values"]);
    return ReduceMean(b["x"] * (count / Maximum(count, 1.0f)));
  };
  for (const uint32_t micro_batches : {1, 2, 4})
    EXPECT_FLOAT_EQ(Run(value, {3, 0, 0, 0}, micro_batches), 1.25f) << micro_batches;
}

TEST_F(SlicedResultsTest, RandomValuesAreThoseOfTheBatchOrRefused) {
  for (const bool of_list : {true, false}) {
    int exact = 0, refused = 0;
    for (uint64_t seed = 0; seed < 300; ++seed) {
      SCOPED_TRACE(absl::StrCat("seed: ", seed, ", grows with a list: ", of_list));
      const Value value = [seed, of_list](const BatchRef& b) {
        RandomValue drawn(seed, b);
        return of_list ? drawn.Draw() : drawn.DrawSum();
      };
      SplitMix random(HashCombine(seed, 1));
      std::vector<int32_t> tags, more;
      for (int i = 0; i < 4; ++i) {
        for (std::vector<int32_t>* counts : {&tags, &more})
          counts->push_back(random.Below(2) == 0 ? 0 : static_cast<int32_t>(random.Below(4)));
      }
      const auto micro_batches = static_cast<uint32_t>(2 + random.Below(3));
      const auto sliced = TraceOf(value, micro_batches);
      if (!sliced.ok()) {
        EXPECT_THAT(sliced, StatusIs(absl::StatusCode::kInvalidArgument,
                                     AnyOf(HasSubstr("depends on a Count of a list's values"),
                                           HasSubstr(kEntangled))));
        ++refused;
        continue;
      }
      const float whole = Run(value, tags, 1, more);
      EXPECT_NEAR(Run(value, tags, micro_batches, more), whole, 1e-5f + 1e-4f * whole);
      ++exact;
    }
    EXPECT_GT(exact, 50);
    EXPECT_GT(refused, 10);
  }
}

// They grow with the records as sums do, but are not the sums of what slices give.
TEST_F(SlicedResultsTest, ProductsAndQuotientsOfSumsAreThoseOfTheBatch) {
  const auto x = [](const BatchRef& b) { return b["x"]; };
  const auto y = [](const BatchRef& b) { return Square(b["x"]) + 1.0f; };
  const auto row = [](const Sym& value) { return Reshape(value, {1, 1}); };
  const std::map<std::string, std::pair<Value, float>> cases = {
      {"sum times mean",
       {[&](const BatchRef& b) { return ReduceSum(x(b)) * ReduceMean(x(b)); }, 6.25f}},
      {"squared sum by a sum",
       {[&](const BatchRef& b) {
          return ReduceSum(x(b)) * ReduceSum(x(b)) / ReduceSum(Square(x(b)));
        },
        25.0f / 39}},
      {"sum by mean",
       {[&](const BatchRef& b) { return ReduceSum(x(b)) / ReduceMean(y(b)); }, 20.0f / 43}},
      {"sum by mean and epsilon",
       {[&](const BatchRef& b) { return ReduceSum(x(b)) / (ReduceMean(y(b)) + 0.25f); },
        5.0f / 11}},
      {"count times two means",
       {[&](const BatchRef& b) { return Count(x(b)) * ReduceMean(x(b)) * ReduceMean(x(b)); },
        6.25f}},
      {"count times squared mean",
       {[&](const BatchRef& b) { return Count(x(b)) * Square(ReduceMean(x(b))); }, 6.25f}},
      {"count times root",
       {[&](const BatchRef& b) { return Count(x(b)) * Sqrt(ReduceMean(y(b))); },
        4 * std::sqrt(10.75f)}},
      {"count times absolute mean",
       {[&](const BatchRef& b) { return Count(x(b)) * Abs(ReduceMean(x(b)) - 2.0f); }, 3}},
      {"count times larger mean",
       {[&](const BatchRef& b) { return Count(x(b)) * Maximum(ReduceMean(x(b)), 1.5f); }, 6}},
      {"count by mean",
       {[&](const BatchRef& b) { return Count(x(b)) / ReduceMean(y(b)); }, 16.0f / 43}},
      {"count times a list's mean",
       {[&](const BatchRef& b) { return Count(x(b)) * ReduceMean(Numbers(b, "tags")); },
        56.0f / 3}},
      {"matrix product",
       {[&](const BatchRef& b) {
          return Reshape(MatMul(row(ReduceSum(x(b))), row(ReduceMean(x(b)))), {});
        },
        6.25f}},
      {"sum beside a product",
       {[&](const BatchRef& b) {
          return ReduceSum(x(b)) - ReduceSum(x(b)) * ReduceMean(x(b)) * 2.0f;
        },
        -7.5f}},
      // Sums of what slices give.
      {"count times mean", {[&](const BatchRef& b) { return Count(x(b)) * ReduceMean(x(b)); }, 5}},
      {"sum of products", {[&](const BatchRef& b) { return ReduceSum(x(b) * y(b)); }, 112}},
      {"mean of multiples", {[&](const BatchRef& b) { return ReduceMean(x(b) * Count(x(b))); }, 5}},
      {"sum by counts",
       {[&](const BatchRef& b) { return ReduceSum(x(b)) * (Count(y(b)) / Count(x(b))); }, 5}}};
  for (const auto& [name, c] : cases) {
    for (const uint32_t micro_batches : {1, 2, 3, 4}) {
      SCOPED_TRACE(absl::StrCat(name, ", slices: ", micro_batches));
      EXPECT_NEAR(Run(c.first, {1, 0, 2, 0}, micro_batches), c.second,
                  1e-5f * (1 + std::abs(c.second)));
    }
  }
}

// No sums over slices give what is in each record's value.
TEST_F(SlicedResultsTest, SumsOfWhatHasTheBatchsMeanInItAreRefused) {
  const auto x = [](const BatchRef& b) { return b["x"]; };
  const std::map<std::string, Value> cases = {
      {"multiples", [&](const BatchRef& b) { return ReduceSum(x(b) * ReduceMean(x(b))); }},
      {"distances", [&](const BatchRef& b) { return ReduceSum(Square(x(b) - ReduceMean(x(b)))); }},
      {"mean of distances, times count",
       [&](const BatchRef& b) { return Count(x(b)) * ReduceMean(Abs(x(b) - ReduceMean(x(b)))); }},
      {"matrix product",
       [&](const BatchRef& b) {
         const Sym column = Reshape(x(b), {-1, 1});
         return Reshape(MatMul(column - ReduceMean(column), column, {.transpose_a = true}), {});
       }},
      {"normalized", [&](const BatchRef& b) { return ReduceSum(Softmax(x(b)) * x(b)); }},
      {"pairs",
       [&](const BatchRef& b) {
         const Sym differences = Reshape(x(b), {-1, 1}) - Reshape(x(b), {1, -1});
         return ReduceSum(ReduceMean(Square(differences), {1}));
       }},
      {"times a product",
       [&](const BatchRef& b) {
         return ReduceSum(x(b)) * ReduceMean(Square(x(b) - ReduceMean(x(b))));
       }},
      {"times a list's count", [&](const BatchRef& b) {
         return Count(b["tags.values"]) * ReduceMean(x(b) * ReduceMean(x(b)));
       }}};
  for (const auto& [name, value] : cases) {
    SCOPED_TRACE(name);
    MU_EXPECT_OK(TraceOf(value, 1));
    EXPECT_THAT(TraceOf(value, 2),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(kEntangled)));
  }
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
