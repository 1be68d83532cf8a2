#include "common/optimizer/optimizer_table.h"

#include <algorithm>
#include <utility>

namespace mu {
namespace {

using muster::OptimizerProto;
using Range = OptimizerKey::Range;

// A number for a row; of a row without values, none.
SlotLayout OneARow(const char* name, uint64_t width, float initial) {
  return {name, std::min<uint64_t>(width, 1), initial};
}

OptimizerKey LearningRate(const char* usual) {
  return {"learning_rate", Range::kAboveZero, 0, "r, before a schedule and warm-up", {}, usual};
}

OptimizerKind Sgd() {
  return {OptimizerProto::kSgd,
          "sgd",
          "Stochastic gradient descent, with momentum if it is set (as PyTorch's `SGD`)",
          {"m = momentum * m + g", "x = x - r * m; nesterov: x = x - r * (g + momentum * m)",
           "without momentum: x = x - r * g"},
          {LearningRate("0.01 to 0.1 is usual"),
           {"momentum", Range::kBelowOne, 0, "part of the last step's direction that is kept"},
           {"nesterov", Range::kFlag, 0, "looks one step ahead (Sutskever et al., 2013)"}},
          [](const OptimizerProto& full, uint64_t width) {
            return full.sgd().momentum() > 0 ? SlotLayouts{{"momentum", width, 0}} : SlotLayouts{};
          },
          [](const OptimizerProto& full) {
            return full.sgd().nesterov() && full.sgd().momentum() == 0
                       ? "nesterov needs momentum; 0.9 is usual"
                       : "";
          }};
}

OptimizerKind Adagrad() {
  return {OptimizerProto::kAdagrad,
          "adagrad",
          "Rates that fall with each value's squared gradients (Duchi, Hazan, Singer, 2011)",
          {"n = n + g^2", "x = x - r * g / (sqrt(n) + epsilon)"},
          {LearningRate("0.01 to 0.1 is usual"),
           {"initial_accumulator", Range::kNotNegative, 0, "n before the first step"},
           {"epsilon", Range::kAboveZero, 1e-10, "keeps the division finite"}},
          [](const OptimizerProto& full, uint64_t width) {
            return SlotLayouts{{"accumulator", width, full.adagrad().initial_accumulator()}};
          }};
}

std::vector<OptimizerKey> AdamKeys() {
  return {LearningRate("0.001 is usual"),
          {"beta1", Range::kBelowOne, 0.9, "how slowly m forgets"},
          {"beta2", Range::kBelowOne, 0.999, "how slowly v forgets"},
          {"epsilon", Range::kAboveZero, 1e-8, "keeps the division finite"},
          {"bias_correction",
           Range::kChoice,
           0,
           "what t counts: steps of the job, as PyTorch's `SparseAdam` does, so that a row touched "
           "late begins with steps that are several times too large; or steps that touched the "
           "row, which takes another number a row",
           {"job", "row"}}};
}

SlotLayouts AdamSlots(bool by_row, uint64_t width) {
  SlotLayouts slots = {{"first_moment", width, 0}, {"second_moment", width, 0}};
  if (by_row) slots.push_back(OneARow("count", width, 0));
  return slots;
}

OptimizerKind Adam() {
  return {OptimizerProto::kAdam,
          "adam",
          "Moments of the gradients (Kingma and Ba, 2015). Rows of tables are lazy: a step changes "
          "only the rows that it read, and their moments",
          {"m = beta1 * m + (1 - beta1) * g; v = beta2 * v + (1 - beta2) * g^2",
           "x = x - r * (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + epsilon)"},
          AdamKeys(),
          [](const OptimizerProto& full, uint64_t width) {
            return AdamSlots(full.adam().bias_correction() == "row", width);
          }};
}

OptimizerKind AdamW() {
  std::vector<OptimizerKey> keys = AdamKeys();
  keys.push_back({"weight_decay", Range::kNotNegative, 0.01, "part of x that a rate of 1 removes"});
  return {OptimizerProto::kAdamw,
          "adamw",
          "Adam with decoupled weight decay (Loshchilov and Hutter, 2019). A step decays only the "
          "rows that it read",
          {"x = x - r * weight_decay * x, then as adam"},
          std::move(keys),
          [](const OptimizerProto& full, uint64_t width) {
            return AdamSlots(full.adamw().bias_correction() == "row", width);
          }};
}

OptimizerKind Rmsprop() {
  return {OptimizerProto::kRmsprop,
          "rmsprop",
          "Rates by a moving average of squared gradients (Tieleman and Hinton, 2012; as PyTorch's "
          "`RMSprop`, whose alpha is rho)",
          {"v = rho * v + (1 - rho) * g^2; centered: a = rho * a + (1 - rho) * g",
           "d = g / (sqrt(v) + epsilon); centered: d = g / (sqrt(v - a^2) + epsilon)",
           "x = x - r * d; with momentum: m = momentum * m + d, x = x - r * m"},
          {LearningRate("0.01 to 0.1 is usual"),
           {"rho", Range::kBelowOne, 0.99, "how slowly v and a forget"},
           {"epsilon", Range::kAboveZero, 1e-8, "keeps the division finite"},
           {"momentum", Range::kBelowOne, 0, "part of the last step's direction that is kept"},
           {"centered", Range::kFlag, 0, "takes the gradients' variance"}},
          [](const OptimizerProto& full, uint64_t width) {
            SlotLayouts slots = {{"square_average", width, 0}};
            if (full.rmsprop().centered()) slots.push_back({"average", width, 0});
            if (full.rmsprop().momentum() > 0) slots.push_back({"momentum", width, 0});
            return slots;
          }};
}

OptimizerKind RowwiseAdagrad() {
  return {OptimizerProto::kRowwiseAdagrad,
          "rowwise_adagrad",
          "Adagrad with one sum for each row, which saves the memory of a slot (as FBGEMM and "
          "TorchRec do). The rows of a variable are those of its axis 0",
          {"n = n + mean of g^2 over the row", "x = x - r * g / (sqrt(n) + epsilon)"},
          {LearningRate("0.01 to 0.1 is usual"),
           {"initial_accumulator", Range::kNotNegative, 0, "n before the first step"},
           {"epsilon", Range::kAboveZero, 1e-8, "keeps the division finite"}},
          [](const OptimizerProto& full, uint64_t width) {
            return SlotLayouts{
                OneARow("accumulator", width, full.rowwise_adagrad().initial_accumulator())};
          }};
}

OptimizerKind Ftrl() {
  return {OptimizerProto::kFtrl,
          "ftrl",
          "FTRL-proximal: follows the regularised leader, and makes values exactly 0 (McMahan et "
          "al., 2013, algorithm 1)",
          {"s = (sqrt(n + g^2) - sqrt(n)) / a; z = z + c * g - s * x; n = n + g^2",
           "x = 0 where |z| <= l1, else (sign(z) * l1 - z) / ((beta + sqrt(n)) / a + l2)",
           "a is r without schedule, warm-up and discount; c = r / a"},
          {LearningRate("0.01 to 0.1 is usual"),
           {"beta", Range::kNotNegative, 1, "slows the first steps"},
           {"l1", Range::kNotNegative, 0, "makes values of little use 0"},
           {"l2", Range::kNotNegative, 0, "draws values to 0"},
           {"initial_accumulator", Range::kNotNegative, 0, "n before the first step"}},
          [](const OptimizerProto& full, uint64_t width) {
            return SlotLayouts{{"linear", width, 0},
                               {"accumulator", width, full.ftrl().initial_accumulator()}};
          },
          [](const OptimizerProto& full) {
            return full.ftrl().beta() + full.ftrl().initial_accumulator() > 0
                       ? ""
                       : "beta or initial_accumulator must be above 0: a value without gradients "
                         "would be 0 / 0";
          }};
}

OptimizerKind Lion() {
  return {
      OptimizerProto::kLion,
      "lion",
      "The sign of a momentum, with one slot and decoupled weight decay (Chen et al., \"Symbolic "
      "Discovery of Optimization Algorithms\", 2023, algorithm 2). A step changes only the rows "
      "that it read",
      {"c = beta1 * m + (1 - beta1) * g; x = x - r * (sign(c) + weight_decay * x)",
       "m = beta2 * m + (1 - beta2) * g"},
      {LearningRate("0.0001 is usual, a tenth to a third of Adam's"),
       {"beta1", Range::kBelowOne, 0.9, "part of m in the step's direction"},
       {"beta2", Range::kBelowOne, 0.99, "how slowly m forgets"},
       {"weight_decay", Range::kNotNegative, 0, "part of x that a rate of 1 removes"}},
      [](const OptimizerProto&, uint64_t width) {
        return SlotLayouts{{"momentum", width, 0}};
      }};
}

}  // namespace

const std::vector<OptimizerKind>& AllOptimizers() {
  static const auto& all = *new std::vector<OptimizerKind>{
      Sgd(), Adagrad(), Adam(), AdamW(), Rmsprop(), RowwiseAdagrad(), Ftrl(), Lion()};
  return all;
}

const OptimizerKind* FindOptimizer(OptimizerProto::KindCase kind) {
  for (const OptimizerKind& known : AllOptimizers()) {
    if (known.kind == kind) return &known;
  }
  return nullptr;
}

}  // namespace mu
