// What users do wrong, and that each error has the line where they did it.
#include "coordinator/frontend/op_support.h"
#include "tests/coordinator/frontend/trace_helper.h"

namespace mu {
namespace {

using ::testing::HasSubstr;

// A function, not a macro: compilers differ in what __LINE__ is within a macro's arguments.
void ExpectError(int line, const std::function<void(FunctionBuilder&)>& build,
                 const std::string& message) {
  EXPECT_THAT(TraceError(line, build), HasSubstr(message));
}

// clang-format off: the lines that the errors must name are counted here.
TEST(TraceErrors, ShapeOfAFreeFunction) {
  const Variable w = MakeVariable("w", {3, 2});
  const auto build = [&](FunctionBuilder& f) {
    const Sym x = f.NextBatch(Criteo())["dense"];
    f.Return("y", MatMul(x, w));
  };
  ExpectError(__LINE__ - 2, build, "matmul: inner sizes differ");
}

TEST(TraceErrors, ShapeOfAnOperator) {
  const auto build = [](FunctionBuilder& f) {
    const Sym dense = f.NextBatch(Criteo())["dense"];
    const Sym two = ConstantTensor(Tensor::Of<float>({2}, {1, 2}));
    f.Return("y", dense + two);
  };
  ExpectError(__LINE__ - 2, build, "add: shapes [?, 13] and [2] cannot be broadcast");
}

TEST(TraceErrors, UnknownColumnNamesTheNearest) {
  const auto build = [](FunctionBuilder& f) {
    const BatchRef batch = f.NextBatch(Criteo());
    f.Return("y", batch["lable"]);
  };
  ExpectError(__LINE__ - 2, build, "no column \"lable\"; did you mean \"label\"?");
}

TEST(TraceErrors, TheFirstOneIsReportedThoughOthersFollow) {
  const auto build = [](FunctionBuilder& f) {
    const BatchRef batch = f.NextBatch(Criteo());
    const Sym bad = Relu(batch["ids"]);
    const Sym worse = Sigmoid(bad) + batch["dense"];
    EXPECT_FALSE(worse.valid());
    EXPECT_EQ(worse.status(), bad.status());
    f.Minimize(worse);
    f.Return("y", worse);
    f.Return("z", Reshape(batch["dense"], {7, 7, 7, -1, -1}));
  };
  ExpectError(__LINE__ - 8, build, "relu: input 0 must be float32, got int64[?, 26]");
}

TEST(TraceErrors, AnErrorThatNothingUsesIsReportedAsWell) {
  const auto build = [](FunctionBuilder& f) {
    const BatchRef batch = f.NextBatch(Criteo());
    Relu(batch["ids"]);
    f.Return("y", batch["dense"]);
  };
  ExpectError(__LINE__ - 3, build, "relu");
}

TEST(TraceErrors, VariableOfAnotherType) {
  const Variable counter = MakeVariable("counter", {}, kInt64);
  const auto build = [&](FunctionBuilder& f) {
    f.Return("y", f.NextBatch(Criteo())["dense"] * counter);
  };
  ExpectError(__LINE__ - 2, build, "one type, got float32[?, 13] and int64[]");
}

TEST(TraceErrors, VariablesOfTwoCoordinators) {
  const Variable w = MakeVariable("w", {3}), v = MakeVariable("v", {3}),
                 longer = MakeVariable("w", {4});
  for (const Variable& other : {v, longer}) {
    const auto build = [&](FunctionBuilder& f) {
      f.Return("w", Read(w));
      f.Return("other", Read(other));
    };
    ExpectError(__LINE__ - 2, build, "'" + other.name() + "' has the id of variable 'w'");
  }
}

TEST(TraceErrors, AssignAddOfAnotherTypeOrShape) {
  const Variable counter = MakeVariable("counter", {}, kInt64);
  const auto wrong_type = [&](FunctionBuilder& f) {
    AssignAdd(counter, ReduceSum(f.NextBatch(Criteo())["dense"]));
  };
  ExpectError(__LINE__ - 2, wrong_type, "delta is float32[] but variable \"counter\" is int64[]");
  const auto fraction = [&](FunctionBuilder&) { AssignAdd(counter, 0.5); };
  ExpectError(__LINE__ - 1, fraction, "the number 0.5 is no int64");
}

TEST(TraceErrors, EmptyHandles) {
  ExpectError(
      __LINE__, [](FunctionBuilder& f) { f.NextBatch(Dataset()); }, "Dataset is empty");
  ExpectError(
      __LINE__, [](FunctionBuilder& f) { f.Return("y", Relu(Variable())); }, "Variable is empty");
  ExpectError(
      __LINE__, [](FunctionBuilder& f) { f.Return("y", Relu(Sym())); }, "empty mu::Sym");
  ExpectError(
      __LINE__, [](FunctionBuilder&) { EmbeddingLookup(EmbeddingTable(), 1); },
      "EmbeddingTable is empty");
  ExpectError(
      __LINE__, [](FunctionBuilder& f) { f.Return("y", Sym()); }, "no value of this");
}

TEST(TraceErrors, ArgumentsReturnsAndDatasets) {
  ExpectError(
      __LINE__, [](FunctionBuilder& f) { f.Arg("a"), f.Arg("a", kInt64); },
      "argument \"a\" already");
  ExpectError(
      __LINE__, [](FunctionBuilder& f) { f.Return("a", 1.0f), f.Return("a", 2.0f); },
      "\"a\" is returned already");
  ExpectError(
      __LINE__, [](FunctionBuilder& f) { f.Return("", 1.0f); }, "needs a name");
  const Dataset other = MakeDataset(CriteoTsv({"y"}).Batch(1), 2);
  ExpectError(
      __LINE__, [&](FunctionBuilder& f) { f.NextBatch(Criteo()), f.NextBatch(other); },
      "already; a step reads one batch of one dataset");
  const Dataset uncreated = MakeDataset(CriteoTsv({"y"}).Batch(1), 0);
  ExpectError(
      __LINE__, [&](FunctionBuilder& f) { f.NextBatch(uncreated); }, "not created");
}

TEST(TraceErrors, LossMustBeAScalar) {
  const Variable w = MakeVariable("w", {13});
  const auto build = [&](FunctionBuilder& f) { f.Minimize(f.NextBatch(Criteo())["dense"] * w); };
  ExpectError(__LINE__ - 1, build, "must be a float32 scalar, got float32[?, 13]");
}

TEST(TraceErrors, ValuesDoNotPassBetweenFunctions) {
  Sym leaked;
  MU_ASSERT_OK(Trace("first", [&](FunctionBuilder& f) {
    f.Return("y", leaked = ConstantTensor(Tensor::Scalar(1.0f)));
  }));
  const auto build = [&](FunctionBuilder& f) {
    const Sym mine = f.Arg("x");
    f.Return("y", Add(mine, leaked));
  };
  ExpectError(__LINE__ - 2, build, "belongs to another function");
}

TEST(TraceErrors, OutsideOfAnyFunction) {
  const Variable w = MakeVariable("w", {3});
  const Sym x = Relu(w);
  EXPECT_FALSE(x.valid());
  EXPECT_THAT(x.status(), testing::StatusIs(absl::StatusCode::kFailedPrecondition,
                                            HasSubstr("no function is being traced")));
  EXPECT_FALSE((x + 1.0f).valid());
  EXPECT_FALSE(Add(1.0f, 2.0f).valid());
  AssignAdd(w, 1.0f);
  EXPECT_FALSE(BatchRef()["label"].valid());
}

TEST(TraceErrors, IdsMayNotDependOnWhatIsPulled) {
  const EmbeddingTable table(
      EmbeddingTableSpec{.name = "t", .rows = 9, .dim = 2}.ToProto().value());
  const Variable w = MakeVariable("w", {3});
  const auto build = [&](FunctionBuilder& f) {
    const Sym ids = Cast(w, kInt64);
    f.Return("y", EmbeddingLookup(table, ids));
  };
  const auto traced = Trace("f", build);
  EXPECT_THAT(traced, testing::StatusIs(absl::StatusCode::kInvalidArgument,
                                        HasSubstr("ids depend on a variable")));
  EXPECT_THAT(std::string(traced.status().message()), HasSubstr("errors_test.cc:"));
}

// clang-format on

// clang-format off: the lines that the errors must name are counted here.
TEST(TraceErrors, TrainingIsSaidAfterDropout) {
  const auto build = [](FunctionBuilder& f) {
    const Sym y = Dropout(f.NextBatch(Criteo())["dense"], 0.5f);
    f.Train();
    f.Return("y", y);
  };
  ExpectError(__LINE__ - 3, build, "call Train() first");
}

TEST(TraceErrors, DropoutInAFunctionThatIsMinimisedWithoutTrain) {
  const Variable w = MakeVariable("w", {13});
  const auto build = [&](FunctionBuilder& f) {
    const Sym y = Dropout(f.NextBatch(Criteo())["dense"] * w, 0.5f);
    f.Minimize(ReduceMean(y));
  };
  ExpectError(__LINE__ - 2, build, "built as for evaluation");
}
// clang-format on

}  // namespace
}  // namespace mu
