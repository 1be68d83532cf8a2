// What evaluation and prediction take of a model's output, and what they measure.
#include "coordinator/training/forward.h"

#include <cmath>
#include <functional>

#include "coordinator/passes/trace.h"
#include "tests/testing/matchers.h"

namespace mu {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::StatusIs;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

pb::DatasetProto SomeData() {
  pb::DatasetProto dataset;
  dataset.set_id(1);
  dataset.set_batch_size(4);
  const auto add = [&](const char* name, pb::CsvColumnProto::Kind kind, const char* separator) {
    pb::CsvColumnProto* column = dataset.mutable_csv()->add_columns();
    column->set_name(name);
    column->set_kind(kind);
    column->set_separator(separator);
  };
  add("user", pb::CsvColumnProto::ID, "");
  add("tags", pb::CsvColumnProto::ID, "|");
  add("class", pb::CsvColumnProto::ID, "");
  add("x", pb::CsvColumnProto::NUMBER, "");
  add("y", pb::CsvColumnProto::NUMBER, "");
  return dataset;
}

struct Traced {
  absl::StatusOr<Forward> forward = Forward();
  std::vector<std::string> returns;
};

Traced TraceForward(const std::function<ModelOutput(const BatchRef&)>& build,
                    const pb::EvaluationProto& evaluation = {}, bool with_label = true,
                    const std::vector<std::string>& columns = {}) {
  Traced traced;
  const auto function = Trace("forward", [&](FunctionBuilder& f) {
    const BatchRef batch = f.NextBatch(Dataset(SomeData()));
    const ModelOutput output = build(batch);
    traced.forward = with_label ? ReturnForEvaluation(f, batch, output, evaluation)
                                : ReturnPredictions(f, batch, output, columns);
  });
  MU_EXPECT_OK(function.status());
  if (function.ok()) {
    for (const auto& value : function->returns()) traced.returns.push_back(value.name());
  }
  return traced;
}

ModelOutput OneTask(const BatchRef& batch) {
  return {.prediction = Sigmoid(batch["x"]), .label = batch["y"]};
}

ModelOutput TwoTasks(const BatchRef& batch) {
  const Sym column = Reshape(Exp(batch["x"]), {-1, 1});
  ModelOutput output;
  output.tasks = {{"click", Sigmoid(batch["x"]), batch["y"], Task::kBinaryClassification},
                  {"kind", Concat({column, column, column}, 1), batch["class"], Task::kMultiClass}};
  output.group = batch["user"];
  output.weight = batch["x"];
  return output;
}

pb::EvaluationProto Evaluation(const std::vector<std::string>& metrics,
                               const std::string& group = "", const std::string& weight = "") {
  pb::EvaluationProto evaluation;
  for (const std::string& metric : metrics) evaluation.add_metrics(metric);
  if (!group.empty()) evaluation.set_group(group);
  if (!weight.empty()) evaluation.set_weight(weight);
  return evaluation;
}

TEST(Forward, ReturnsWhatTheModelHas) {
  EXPECT_THAT(TraceForward(OneTask).returns, ElementsAre("prediction", "label"));
  EXPECT_THAT(TraceForward(OneTask, {}, /*with_label=*/false).returns, ElementsAre("prediction"));
  EXPECT_THAT(TraceForward(OneTask, Evaluation({}, "user", "x")).returns,
              ElementsAre("prediction", "label", "group", "weight"));
  const Traced two = TraceForward(TwoTasks);
  EXPECT_THAT(two.returns, ElementsAre("click.prediction", "kind.prediction", "click.label",
                                       "kind.label", "group", "weight"));
  MU_ASSERT_OK(two.forward.status());
  EXPECT_EQ(two.forward->tasks[1].task, Task::kMultiClass);
}

TEST(Forward, CopiesColumnsBesidePredictions) {
  const Traced traced = TraceForward(OneTask, {}, /*with_label=*/false, {"user", "y"});
  EXPECT_THAT(traced.returns, ElementsAre("prediction", "column.user", "column.y"));
  const auto wrong = [](const std::string& name) {
    return std::string(TraceForward(OneTask, {}, false, {name}).forward.status().message());
  };
  EXPECT_EQ(wrong("usr"),
            "--columns: is `usr`, which is no column of the data; did you mean \"user\"?");
  EXPECT_EQ(wrong("tags"), "--columns: is `tags`, which is not one value for each record");
}

TEST(Forward, SaysWhatIsWrongWithAnOutput) {
  const auto wrong = [](const std::function<ModelOutput(const BatchRef&)>& build,
                        const pb::EvaluationProto& evaluation = {}) {
    const Traced traced = TraceForward(build, evaluation);
    EXPECT_THAT(traced.forward, testing::HasCode(kInvalid));
    return std::string(traced.forward.status().message());
  };
  EXPECT_EQ(wrong([](const BatchRef& batch) { return ModelOutput{.prediction = batch["x"]}; }),
            "the model's label is missing; it must be float32[?]");
  EXPECT_THAT(wrong([](const BatchRef& batch) { return ModelOutput{.label = batch["y"]}; }),
              HasSubstr("the model's prediction is missing"));
  EXPECT_THAT(wrong([](const BatchRef& batch) {
                return ModelOutput{.prediction = batch["user"], .label = batch["y"]};
              }),
              HasSubstr("prediction is int64[?]; it must be float32[?]"));
  EXPECT_THAT(wrong([](const BatchRef& batch) {
                return ModelOutput{.prediction = ReduceMean(batch["x"]), .label = batch["y"]};
              }),
              HasSubstr("prediction is float32[]; it must be float32[?]"));
  EXPECT_THAT(wrong([](const BatchRef& batch) {
                return ModelOutput{
                    .prediction = batch["x"], .label = batch["class"], .task = Task::kMultiClass};
              }),
              HasSubstr("prediction is float32[?]; it must be float32[?, ?]"));
  const auto with_names = [&](const std::string& a, const std::string& b) {
    return wrong([&](const BatchRef& batch) {
      ModelOutput output = TwoTasks(batch);
      output.tasks[0].name = a;
      output.tasks[1].name = b;
      return output;
    });
  };
  EXPECT_THAT(with_names("a", "a"), HasSubstr("two tasks of the model are called `a`"));
  EXPECT_THAT(with_names("a", ""), HasSubstr("use letters, digits and _"));
  EXPECT_THAT(with_names("a.b", "c"), HasSubstr("use letters, digits and _"));
  EXPECT_EQ(wrong(OneTask, Evaluation({}, "usr")),
            "evaluation.group: is `usr`, which is no column of the data; did you mean \"user\"?");
  EXPECT_EQ(wrong(OneTask, Evaluation({}, "x")),
            "evaluation.group: is `x`, which is not one id for each record");
  EXPECT_EQ(wrong(OneTask, Evaluation({}, "user", "user")),
            "evaluation.weight: is `user`, which is not one number for each record");
}

TEST(Measurement, MeasuresEachTaskByWhatItHas) {
  const pb::EvaluationProto evaluation = Evaluation({"accuracy", "auc", "top_k_accuracy@2", "mrr"});
  const Traced traced = TraceForward(TwoTasks, evaluation);
  MU_ASSERT_OK(traced.forward.status());
  MU_ASSERT_OK_AND_ASSIGN(Measurement measurement,
                          Measurement::Create(*traced.forward, evaluation));
  EXPECT_THAT(measurement.returns(),
              ElementsAre("click.prediction", "click.label", "kind.prediction", "kind.label",
                          "group", "weight"));
  EXPECT_THAT(measurement.WithoutWeights(), ElementsAre("click.mrr"));
  const auto floats = [](Shape shape, std::vector<float> values) {
    return Tensor::Of<float>(std::move(shape), values);
  };
  const auto ids = [](std::vector<int64_t> values) {
    return Tensor::Of<int64_t>(Shape{static_cast<int64_t>(values.size())}, values);
  };
  MU_ASSERT_OK(measurement.Add({}));
  const auto add = [&](uint32_t records, const std::vector<Tensor>& batch) {
    return measurement.Add({.records = records, .values = batch});
  };
  MU_ASSERT_OK(add(3, {floats({3}, {0.9f, 0.2f, 0.6f}), floats({3}, {1, 0, 0}),
                       floats({3, 3}, {0.5f, 0.3f, 0.2f, 0.1f, 0.8f, 0.1f, 0.2f, 0.2f, 0.6f}),
                       ids({1, 1, 0}), ids({4, 4, 5}), floats({3}, {1, 2, 1})}));
  std::map<std::string, double> values;
  for (const MetricValue& metric : measurement.Values()) values[metric.name] = metric.value;
  EXPECT_EQ(values.size(), 6u);
  EXPECT_EQ(values["click.accuracy"], 0.75);
  EXPECT_EQ(values["click.auc"], 1);
  EXPECT_EQ(values["click.mrr"], 1);
  EXPECT_EQ(values["kind.accuracy"], 0.5);
  // The last record's class is the second or the third.
  EXPECT_EQ(values["kind.top_k_accuracy@2"], (1 + 2 + 0.5) / 4);
  EXPECT_DOUBLE_EQ(values["kind.mrr"], (0.5 + 2 * 1 + (1.0 / 2 + 1.0 / 3) / 2) / 4);
  EXPECT_THAT(add(1, {floats({1}, {2}), floats({1}, {1}), floats({1, 3}, {1, 0, 0}), ids({0}),
                      ids({0}), floats({1}, {1})}),
              StatusIs(kInvalid, HasSubstr("task `click`: a prediction is 2")));
  EXPECT_THAT(add(2, {floats({1}, {1}), floats({1}, {1}), floats({1, 3}, {1, 0, 0}), ids({0}),
                      ids({0}), floats({1}, {1})}),
              StatusIs(kInvalid, HasSubstr("must give one float32 value for each")));
}

TEST(Measurement, RefusesMetricsThatNoTaskHas) {
  const auto wrong = [](const pb::EvaluationProto& evaluation) {
    const Traced traced = TraceForward(OneTask, evaluation);
    MU_EXPECT_OK(traced.forward.status());
    return Measurement::Create(*traced.forward, evaluation).status();
  };
  EXPECT_THAT(
      wrong(Evaluation({"auc", "rmse"})),
      StatusIs(kInvalid, HasSubstr("evaluation.metrics[1]: `rmse` is no metric of the task")));
  EXPECT_THAT(wrong(Evaluation({"gauc"})),
              StatusIs(kInvalid, HasSubstr("evaluation.metrics: `gauc` is measured by group")));
  MU_EXPECT_OK(wrong(Evaluation({"gauc"}, "user")));
  MU_EXPECT_OK(wrong({}));
}

}  // namespace
}  // namespace mu
