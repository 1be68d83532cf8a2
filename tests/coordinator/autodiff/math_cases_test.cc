#include "tests/coordinator/autodiff/check_cases.h"

namespace mu {
namespace {

using Vars = std::vector<Variable>;

// Cases of a binary op: equal shapes, broadcasting either way, sizes known at run time only.
void AddBinary(std::vector<CheckCase>& cases, const std::string& op,
               Sym (*f)(const Operand&, const Operand&), float low, float high) {
  cases.push_back(
      {op, "same", {{{2, 3}}, {{2, 3}, low, high}}, [f](const Vars& v, const BatchRef&) {
         return f(v[0], v[1]);
       }});
  cases.push_back({op, "row", {{{4, 3}}, {{3}, low, high}}, [f](const Vars& v, const BatchRef&) {
                     return f(v[0], v[1]);
                   }});
  cases.push_back(
      {op, "column", {{{4, 1}}, {{2, 1, 3}, low, high}}, [f](const Vars& v, const BatchRef&) {
         return f(v[0], v[1]);
       }});
  cases.push_back(
      {op, "batch", {{{13}}, {{1}, low, high}}, [f](const Vars& v, const BatchRef& batch) {
         return f(Multiply(batch["dense"], v[0]), v[1]);
       }});
  cases.push_back({op, "itself", {{{3}, low, high}}, [f](const Vars& v, const BatchRef&) {
                     return f(v[0], Multiply(v[0], 0.5f));
                   }});
}

void AddUnary(std::vector<CheckCase>& cases, const std::string& op, Sym (*f)(const Operand&),
              float low, float high) {
  cases.push_back({op, "plain", {{{2, 3}, low, high}}, [f](const Vars& v, const BatchRef&) {
                     return f(v[0]);
                   }});
}

void AddProducts(std::vector<CheckCase>& cases) {
  for (const bool ta : {false, true}) {
    for (const bool tb : {false, true}) {
      const std::string name = std::string(ta ? "ta" : "a") + (tb ? "_tb" : "_b");
      const MatMulOptions options{ta, tb};
      const Shape a = ta ? Shape({4, 2}) : Shape({2, 4});
      const Shape b = tb ? Shape({3, 4}) : Shape({4, 3});
      cases.push_back({"matmul", name, {{a}, {b}}, [options](const Vars& v, const BatchRef&) {
                         return MatMul(v[0], v[1], options);
                       }});
      const Shape batch_a = ta ? Shape({2, 4, 2}) : Shape({2, 2, 4});
      const Shape batch_b = tb ? Shape({2, 3, 4}) : Shape({2, 4, 3});
      cases.push_back(
          {"batch_matmul", name, {{batch_a}, {batch_b}}, [options](const Vars& v, const BatchRef&) {
             return BatchMatMul(v[0], v[1], options);
           }});
    }
  }
  cases.push_back(
      {"matmul", "batch", {{{13, 2}}, {{2, 2}}}, [](const Vars& v, const BatchRef& batch) {
         return MatMul(MatMul(batch["dense"], v[0]), v[1]);
       }});
  cases.push_back(
      {"batch_matmul", "itself", {{{13}}}, [](const Vars& v, const BatchRef& batch) {
         const Sym x = Reshape(Slice(batch["dense"] * v[0], {0, 1}, {-1, 12}), {-1, 4, 3});
         return BatchMatMul(x, x, {.transpose_b = true});
       }});
}

void AddReductions(std::vector<CheckCase>& cases) {
  using Reduce = Sym (*)(const Operand&, const std::vector<int64_t>&, bool);
  const std::vector<std::pair<std::string, Reduce>> reductions = {{"reduce_sum", ReduceSum},
                                                                  {"reduce_mean", ReduceMean}};
  for (const auto& [op, reduce] : reductions) {
    for (const bool keep : {false, true}) {
      const std::string suffix = keep ? "_keep" : "";
      for (const std::vector<int64_t>& axes :
           std::vector<std::vector<int64_t>>{{}, {0}, {1}, {-1}, {2, 0}, {0, 1, 2}}) {
        std::string name = "axes";
        for (const int64_t axis : axes) name += std::to_string(axis + 3);
        cases.push_back({op,
                         name + suffix,
                         {{{2, 3, 2}}},
                         [reduce = reduce, axes, keep](const Vars& v, const BatchRef&) {
                           return reduce(v[0], axes, keep);
                         }});
      }
      cases.push_back({op,
                       "batch" + suffix,
                       {{{13}}},
                       [reduce = reduce, keep](const Vars& v, const BatchRef& batch) {
                         return reduce(batch["dense"] * v[0], {0}, keep);
                       }});
    }
  }
}

void AddRandom(std::vector<CheckCase>& cases) {
  cases.push_back({"dropout", "plain", {{{4, 5}}}, [](const Vars& v, const BatchRef&) {
                     return Dropout(v[0], 0.4f);
                   }});
  cases.push_back({"dropout", "twice", {{{13}}}, [](const Vars& v, const BatchRef& batch) {
                     return Dropout(Dropout(Multiply(batch["dense"], v[0]), 0.2f), 0.2f);
                   }});
}

}  // namespace

std::vector<CheckCase> MathCheckCases() {
  std::vector<CheckCase> cases;
  AddBinary(cases, "add", Add, -1, 1);
  AddBinary(cases, "subtract", Subtract, -1, 1);
  AddBinary(cases, "multiply", Multiply, -1, 1);
  AddBinary(cases, "divide", Divide, 0.6f, 2);
  const std::vector<float> a = {1, -1, 0.5f, -0.5f};
  const std::vector<float> b = {0.3f, 0.2f, -0.4f, 0.6f};
  cases.push_back({"maximum",
                   "mixed",
                   {{{2, 2}, 0, 0, a}, {{2, 2}, 0, 0, b}},
                   [](const Vars& v, const BatchRef&) { return Maximum(v[0], v[1]); }});
  cases.push_back({"maximum",
                   "row",
                   {{{2, 2}, 0, 0, a}, {{2}, 0, 0, {0.1f, -0.1f}}},
                   [](const Vars& v, const BatchRef&) { return Maximum(v[0], v[1]); }});
  cases.push_back({"minimum",
                   "mixed",
                   {{{2, 2}, 0, 0, a}, {{2, 2}, 0, 0, b}},
                   [](const Vars& v, const BatchRef&) { return Minimum(v[0], v[1]); }});
  AddUnary(cases, "negate", Negate, -1, 1);
  cases.push_back({"relu", "mixed", {{{4}, 0, 0, a}}, [](const Vars& v, const BatchRef&) {
                     return Relu(v[0]);
                   }});
  AddUnary(cases, "sigmoid", Sigmoid, -3, 3);
  AddUnary(cases, "tanh", Tanh, -2, 2);
  AddUnary(cases, "log", Log, 0.5f, 2);
  AddUnary(cases, "log1p", Log1p, -0.5f, 2);
  AddUnary(cases, "exp", Exp, -1, 1);
  AddUnary(cases, "sqrt", Sqrt, 0.5f, 2);
  AddUnary(cases, "square", Square, -1, 1);
  cases.push_back({"cast", "float", {{{3}}}, [](const Vars& v, const BatchRef&) {
                     return Cast(v[0], kFloat32);
                   }});
  AddProducts(cases);
  AddReductions(cases);
  cases.push_back({"sigmoid_cross_entropy",
                   "both",
                   {{{4}, -3, 3}, {{4}, 0, 1}},
                   [](const Vars& v, const BatchRef&) { return SigmoidCrossEntropy(v[0], v[1]); }});
  cases.push_back(
      {"sigmoid_cross_entropy", "batch", {{{13, 1}}}, [](const Vars& v, const BatchRef& batch) {
         return SigmoidCrossEntropy(Reshape(MatMul(batch["dense"], v[0]), {-1}), batch["label"]);
       }});
  cases.push_back(
      {"mean_squared_error", "both", {{{5}}, {{5}}}, [](const Vars& v, const BatchRef&) {
         return MeanSquaredError(v[0], v[1]);
       }});
  cases.push_back(
      {"mean_squared_error", "batch", {{{13, 1}}}, [](const Vars& v, const BatchRef& batch) {
         return MeanSquaredError(Reshape(MatMul(batch["dense"], v[0]), {-1}), batch["label"]);
       }});
  cases.push_back(
      {"relu_grad", "first", {{{4}}, {{4}, 0, 0, a}}, [](const Vars& v, const BatchRef&) {
         return ReluGrad(v[0], v[1]);
       }});
  AddRandom(cases);
  return cases;
}

}  // namespace mu
