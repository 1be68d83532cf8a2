// What SasRec's scores depend on: the newest items in their order, and no position that training
// does not reach.
#include "coordinator/frontend/sasrec.h"

#include <google/protobuf/text_format.h>

#include <cmath>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/exec/executor.h"
#include "coordinator/frontend/model_registry.h"
#include "tests/coordinator/frontend/trace_helper.h"

namespace mu {
namespace {

using ::google::protobuf::TextFormat;

constexpr int64_t kDim = 4;
constexpr float kSame = 1e-5f, kDifferent = 1e-4f;

template <typename Proto>
Proto Parse(const std::string& text) {
  Proto proto;
  EXPECT_TRUE(TextFormat::ParseFromString(text, &proto)) << text;
  return proto;
}

// A model of sequences of `length` items. Parameters of one name begin with the same values in
// models of all lengths.
class Scorer {
 public:
  explicit Scorer(int64_t length) : length_(length) {
    const auto config = Parse<pb::ModelProto>(absl::StrCat(
        "sasrec { sequence_column: 'items' length: ", length, " items: 9 embedding_dim: ", kDim,
        " blocks: 2 heads: 2 item_column: 'item' label_column: 'label' }"));
    const Dataset data(Parse<pb::DatasetProto>(
        absl::StrCat("id: 1 name: 'sequences' csv { columns { name: 'items' kind: ID separator: "
                     "' ' length: ",
                     length, " } columns { name: 'item' kind: ID } }")));
    auto created = ModelRegistry::WithBuiltins().Create(config);
    EXPECT_TRUE(created.ok()) << created.status();
    model_ = *std::move(created);
    MU_EXPECT_OK(model_->Create(factory_));
    auto traced = Trace("predict", [&](FunctionBuilder& f) {
      f.Return("score", model_->Build(f, f.NextBatch(data)).prediction);
    });
    EXPECT_TRUE(traced.ok()) << traced.status();
    function_ = *std::move(traced);
    for (const auto& [id, name] : factory_.parameters.names) {
      if (absl::EndsWith(name, "/gamma") || absl::EndsWith(name, "/beta")) continue;
      SplitMix random(HashString(name));
      for (float& value : Values(name)) value = static_cast<float>(random.Unit() - 0.5);
    }
  }

  absl::Span<float> Values(const std::string& wanted) {
    for (const auto& [id, name] : factory_.parameters.names) {
      if (name != wanted) continue;
      return id.first ? absl::MakeSpan(factory_.parameters.table(id.second).values)
                      : factory_.parameters.variable(id.second).flat<float>();
    }
    ADD_FAILURE() << "there is no " << wanted;
    return {};
  }
  void AddToPosition(int64_t position, float change) {
    for (float& value : Values("positions").subspan(static_cast<size_t>(position * kDim), kDim)) {
      value += change;
      change = -change;  // a layer norm does not see what all elements gain
    }
  }

  // Of item 8 after these.
  float Score(std::vector<int64_t> items) {
    const int64_t there = static_cast<int64_t>(items.size());
    items.resize(static_cast<size_t>(length_));
    Batch batch;
    batch.records = 1;
    batch.names = {"items", "items.length", "item"};
    batch.columns = {Tensor::Of<int64_t>({1, length_}, items), Tensor::Of<int64_t>({1}, {there}),
                     Tensor::Of<int64_t>({1}, {8})};
    const auto compiled = Compile(function_, factory_.parameters.routing());
    EXPECT_TRUE(compiled.ok()) << compiled.status();
    if (!compiled.ok()) return 0;
    Executor executor(*compiled);
    StepInputs inputs;
    inputs.batch = &batch;
    std::vector<Tensor> returns;
    MU_EXPECT_OK(executor.RunStep(inputs, factory_.parameters, &returns));
    return returns.empty() ? 0 : *returns[0].data<float>();
  }

 private:
  const int64_t length_;
  testing::FakeFactory factory_;
  std::unique_ptr<Model> model_;
  pb::FunctionProto function_;
};

TEST(SasRecScore, ReadsNoPositionThatIsNotTrained) {
  Scorer scorer(4);
  const float full = scorer.Score({7, 1, 2, 3}), shorter = scorer.Score({1, 2, 3});
  scorer.AddToPosition(3, 5.0f);
  EXPECT_EQ(scorer.Score({7, 1, 2, 3}), full);
  EXPECT_EQ(scorer.Score({1, 2, 3}), shorter);
  scorer.AddToPosition(2, 0.5f);
  EXPECT_GT(std::abs(scorer.Score({7, 1, 2, 3}) - full), kDifferent);
}

TEST(SasRecScore, FollowsFromTheNewestItemsOfAFullSequenceInTheirOrder) {
  Scorer scorer(4);
  const float score = scorer.Score({7, 1, 2, 3});
  EXPECT_NEAR(scorer.Score({1, 2, 3}), score, kSame);
  EXPECT_NEAR(scorer.Score({6, 1, 2, 3}), score, kSame);  // the oldest has no place
  EXPECT_GT(std::abs(scorer.Score({7, 1, 2, 4}) - score), kDifferent);
  EXPECT_GT(std::abs(scorer.Score({7, 2, 1, 3}) - score), kDifferent);
  EXPECT_GT(std::abs(scorer.Score({7, 1, 3, 2}) - score), kDifferent);
}

// All of its items, each at its own position, as in a model of longer sequences.
TEST(SasRecScore, OfAShorterSequenceIsThatOfALongerModel) {
  Scorer scorer(4), longer(7);
  for (const std::vector<int64_t>& items :
       std::vector<std::vector<int64_t>>{{5}, {2, 6}, {6, 2}, {1, 2, 3}}) {
    EXPECT_NEAR(scorer.Score(items), longer.Score(items), kSame) << items.size();
  }
  // Of four items the longer one has a position for each, as a shorter model has not.
  EXPECT_GT(std::abs(scorer.Score({7, 1, 2, 3}) - longer.Score({7, 1, 2, 3})), kDifferent);
}

}  // namespace
}  // namespace mu
