// Every op with a form in ONNX: random cases in ONNX Runtime against the plain loops.
#include "coordinator/export/onnx_ops.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/graph/op_table.h"
#include "coordinator/export/onnx_export.h"
#include "coordinator/export/onnx_file.h"
#include "tests/common/exec/op_cases.h"
#include "tests/common/exec/op_reference.h"
#include "tests/coordinator/export/checkpoint_maker.h"
#include "tests/coordinator/export/onnx_runtime.h"
#include "tests/testing/matchers.h"

namespace mu {
namespace {

using testing::CaseMakers;
using testing::CheckpointMaker;
using testing::Dense;
using testing::GraphMaker;
using testing::OnnxAnswer;
using testing::OnnxCase;
using testing::OpCase;
using testing::References;

constexpr int kCasesOfAnOp = 12;

// The case as a function: one input is a column, of a size that is not known before, as in models;
// the others are constants.
pb::FunctionProto FunctionOf(const std::string& op, const OpCase& c, size_t column,
                             size_t outputs) {
  GraphMaker maker;
  std::vector<GraphMaker::Ref> inputs;
  for (size_t i = 0; i < c.inputs.size(); ++i) {
    Shape shape(c.inputs[i].shape);
    if (i == column && shape.rank() > 0) {
      shape[0] = kUnknownDim;
      inputs.push_back(maker.Column("x", c.inputs[i].dtype, shape));
    } else {
      inputs.push_back(maker.Constant(testing::ToTensor(c.inputs[i])));
    }
  }
  const GraphMaker::Ref result = maker.Op(op, inputs, c.attrs);
  for (size_t i = 0; i < outputs; ++i)
    maker.Return(absl::StrCat("y", i), result.Output(static_cast<int>(i)));
  return maker.function();
}

void ExpectClose(const Dense& actual, const Dense& expected) {
  EXPECT_EQ(actual.dtype, expected.dtype);
  ASSERT_EQ(actual.shape, expected.shape);
  for (size_t i = 0; i < expected.values.size(); ++i) {
    const double wanted = expected.values[i];
    if (std::isnan(wanted) && std::isnan(actual.values[i])) continue;
    if (wanted == actual.values[i]) continue;  // infinities, too
    const double tolerance = expected.dtype == kFloat32 ? 2e-5 * (1 + std::abs(wanted)) : 0;
    ASSERT_NEAR(actual.values[i], wanted, tolerance) << "element " << i;
  }
}

TEST(OnnxOps, ComputeWhatTheKernelsDo) {
  if (const std::string missing = testing::OnnxRuntimeMissing(); !missing.empty())
    GTEST_SKIP() << missing;
  MU_ASSERT_OK_AND_ASSIGN(const TempDirectory directory, TempDirectory::Create("onnx_ops"));
  MU_ASSERT_OK(CheckpointMaker(1).Write(directory.path() + "/checkpoint"));
  MU_ASSERT_OK_AND_ASSIGN(const CheckpointValues none,
                          CheckpointValues::Open(directory.path() + "/checkpoint"));
  std::vector<OnnxCase> cases;
  std::vector<std::vector<Dense>> expected;
  std::vector<std::string> names;
  for (const auto& [op, make] : CaseMakers()) {
    if (AllOnnxRules().Find(op) == nullptr || AllOnnxRules().Find(op)->emit == nullptr) continue;
    for (uint64_t seed = 0; seed < kCasesOfAnOp; ++seed) {
      SplitMix random(HashString(op) + seed);
      const OpCase c = make(random);
      pb::NodeProto node;
      for (const auto& [name, value] : c.attrs) (*node.mutable_attrs())[name] = value;
      const std::vector<Dense> wanted =
          References().at(op)(c.inputs, AllOps().Find(op)->Read(node.attrs()));
      const size_t column = c.inputs.empty() ? 0 : random.Below(c.inputs.size());
      const pb::FunctionProto function = FunctionOf(op, c, column, wanted.size());
      SCOPED_TRACE(absl::StrCat(op, " seed ", seed, ": ", function.ShortDebugString()));
      MU_ASSERT_OK_AND_ASSIGN(const OnnxGraph graph, OnnxOf(function, none));
      const std::string path = absl::StrCat(directory.path(), "/", cases.size(), ".onnx");
      MU_ASSERT_OK(WriteOnnx(graph, none, {}, path).status());
      OnnxCase each{path, {}};
      for (const auto& input : graph.proto().input()) each.inputs[input.name()] = c.inputs[column];
      cases.push_back(std::move(each));
      expected.push_back(wanted);
      names.push_back(absl::StrCat(op, " seed ", seed));
    }
  }
  MU_ASSERT_OK_AND_ASSIGN(const std::vector<OnnxAnswer> answers,
                          testing::RunOnnx(cases, directory.path()));
  for (size_t i = 0; i < answers.size(); ++i) {
    SCOPED_TRACE(names[i]);
    EXPECT_EQ(answers[i].error, "");
    for (size_t k = 0; answers[i].error.empty() && k < expected[i].size(); ++k)
      ExpectClose(answers[i].outputs.at(absl::StrCat("y", k)), expected[i][k]);
  }
  EXPECT_GT(answers.size(), 100u);
}

// What a checkpoint has of a variable: some of its rows, and products with all of them.
TEST(OnnxOps, PartsOfVariablesAreThoseOfTheCheckpoint) {
  if (const std::string missing = testing::OnnxRuntimeMissing(); !missing.empty())
    GTEST_SKIP() << missing;
  MU_ASSERT_OK_AND_ASSIGN(const TempDirectory directory, TempDirectory::Create("onnx_parts"));
  CheckpointMaker maker(1);
  maker.AddVariable({.name = "w", .shape = {4, 2}},
                    Tensor::Of<float>({4, 2}, {1, 2, 3, 4, 5, 6, 7, 8}));
  MU_ASSERT_OK(maker.Write(directory.path() + "/checkpoint"));
  MU_ASSERT_OK_AND_ASSIGN(const CheckpointValues checkpoint,
                          CheckpointValues::Open(directory.path() + "/checkpoint"));
  GraphMaker::Attrs attrs = {{"variable", testing::StringAttr("w")},
                             {"id", testing::IntAttr(0)},
                             {"dtype", testing::TypeAttr(kFloat32)},
                             {"shape", testing::ShapeAttr({4, 2})}};
  GraphMaker graph;
  graph.Return("y",
               graph.Op("sharded_matmul", {graph.Column("x", kFloat32, {kUnknownDim, 2})}, attrs));
  attrs.push_back({"first", testing::IntAttr(1)});
  attrs.push_back({"count", testing::IntAttr(2)});
  graph.Return("rows", graph.Op("variable_rows", {}, attrs));
  MU_ASSERT_OK_AND_ASSIGN(const OnnxGraph onnx, OnnxOf(graph.function(), checkpoint));
  const std::string path = directory.path() + "/model.onnx";
  MU_ASSERT_OK(WriteOnnx(onnx, checkpoint, {}, path).status());
  const OnnxCase one{path, {{"x", Dense{kFloat32, {3, 2}, {1, 0, 0, 1, 2, -1}}}}};
  MU_ASSERT_OK_AND_ASSIGN(const std::vector<OnnxAnswer> answers,
                          testing::RunOnnx({one}, directory.path()));
  ASSERT_EQ(answers[0].error, "");
  ExpectClose(answers[0].outputs.at("y"),
              Dense{kFloat32, {3, 4}, {1, 3, 5, 7, 2, 4, 6, 8, 0, 2, 4, 6}});
  ExpectClose(answers[0].outputs.at("rows"), Dense{kFloat32, {2, 2}, {3, 4, 5, 6}});
}

// Lookups are no kernels' ops: bags that are empty, at the end as well, with and without weights.
TEST(OnnxOps, LookupsAddUpBags) {
  if (const std::string missing = testing::OnnxRuntimeMissing(); !missing.empty())
    GTEST_SKIP() << missing;
  MU_ASSERT_OK_AND_ASSIGN(const TempDirectory directory, TempDirectory::Create("onnx_lookups"));
  CheckpointMaker maker(2);
  maker.AddTable({.name = "t", .rows = 4, .dim = 2, .initializer = Normal{0, 1}, .partitions = 3},
                 {{1, {10, 20}}, {3, {5, -5}}});
  MU_ASSERT_OK(maker.Write(directory.path() + "/checkpoint"));
  MU_ASSERT_OK_AND_ASSIGN(const CheckpointValues checkpoint,
                          CheckpointValues::Open(directory.path() + "/checkpoint"));
  Dense rows = Dense::Zeros(kFloat32, {4, 2});
  MU_ASSERT_OK(checkpoint.Read(*checkpoint.Find("t"), [&](absl::string_view bytes) {
    const float* values = reinterpret_cast<const float*>(bytes.data());
    std::copy_n(values, 8, rows.values.begin());
    return absl::OkStatus();
  }));
  const std::vector<Dense> bags = {Dense{kInt32, {6}, {0, 0, 2, 3, 3, 3}},
                                   Dense{kInt32, {2}, {0, 3}}, Dense{kInt32, {1}, {0}},
                                   Dense{kInt32, {3}, {0, 0, 0}}};
  std::vector<OnnxCase> cases;
  std::vector<Dense> expected;
  for (const std::string combiner : {"sum", "mean", "sqrtn"}) {
    for (const bool weighted : {false, true}) {
      GraphMaker graph;
      std::vector<GraphMaker::Ref> inputs = {graph.Column("x.values", kInt64, {kUnknownDim}),
                                             graph.Column("x.splits", kInt32, {kUnknownDim})};
      if (weighted) inputs.push_back(graph.Column("x.weights", kFloat32, {kUnknownDim}));
      graph.Return("y", graph.Op("embedding_lookup", inputs,
                                 {{"table", testing::StringAttr("t")},
                                  {"id", testing::IntAttr(0)},
                                  {"rows", testing::IntAttr(4)},
                                  {"dim", testing::IntAttr(2)},
                                  {"combiner", testing::StringAttr(combiner)}}));
      MU_ASSERT_OK_AND_ASSIGN(const OnnxGraph onnx, OnnxOf(graph.function(), checkpoint));
      const std::string path = absl::StrCat(directory.path(), "/", combiner, weighted, ".onnx");
      MU_ASSERT_OK(WriteOnnx(onnx, checkpoint, {}, path, /*most_inside=*/weighted ? 0 : 1000));
      for (const Dense& splits : bags) {
        const int64_t n = static_cast<int64_t>(splits.values.back());
        OnnxCase each{path, {{"x.splits", splits}}};
        Dense values = Dense::Zeros(kInt64, {n}), weights = Dense::Zeros(kFloat32, {n});
        for (int64_t i = 0; i < n; ++i) values.values[i] = (i * 3 + 1) % 4;
        // The second bag of the first case weighs nothing.
        for (int64_t i = 0; i < n; ++i) weights.values[i] = i == 2 ? 0 : 0.5 + i;
        each.inputs["x.values"] = values;
        if (weighted) each.inputs["x.weights"] = weights;
        cases.push_back(each);
        Dense sums = Dense::Zeros(kFloat32, {static_cast<int64_t>(splits.values.size()) - 1, 2});
        for (int64_t b = 0; b < sums.shape[0]; ++b) {
          double total = 0, squares = 0;
          for (auto i = static_cast<int64_t>(splits.values[b]); i < splits.values[b + 1]; ++i) {
            const double w = weighted ? weights.values[i] : 1;
            total += w;
            squares += w * w;
            for (int64_t d = 0; d < 2; ++d)
              sums.at({b, d}) += w * rows.at({static_cast<int64_t>(values.values[i]), d});
          }
          const double by = combiner == "mean"    ? total
                            : combiner == "sqrtn" ? std::sqrt(squares)
                                                  : 1;
          for (int64_t d = 0; d < 2 && by != 0; ++d) sums.at({b, d}) /= by;
        }
        expected.push_back(sums);
      }
    }
  }
  MU_ASSERT_OK_AND_ASSIGN(const std::vector<OnnxAnswer> answers,
                          testing::RunOnnx(cases, directory.path()));
  for (size_t i = 0; i < answers.size(); ++i) {
    SCOPED_TRACE(absl::StrCat(cases[i].model, " case ", i));
    EXPECT_EQ(answers[i].error, "");
    if (answers[i].error.empty()) ExpectClose(answers[i].outputs.at("y"), expected[i]);
  }
}

}  // namespace
}  // namespace mu
