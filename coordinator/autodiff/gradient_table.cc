#include "coordinator/autodiff/gradient_table.h"

#include "common/base/check.h"

namespace mu {

void GradientTable::AddEntry(const std::string& op, Entry entry) {
  MU_CHECK(AllOps().Find(op) != nullptr && "a gradient for an op that is not in the op table");
  const bool added = entries_.emplace(op, std::move(entry)).second;
  MU_CHECK(added && "an op is in the gradient table twice");
}

void GradientTable::AddRule(const std::string& op, GradientRule rule) {
  AddEntry(op, {Kind::kRule, std::move(rule), ""});
}

void GradientTable::AddZero(const std::string& op) { AddEntry(op, {Kind::kZero, nullptr, ""}); }

void GradientTable::AddNone(const std::string& op, std::string why) {
  AddEntry(op, {Kind::kNone, nullptr, std::move(why)});
}

void GradientTable::AddEnd(const std::string& op) { AddEntry(op, {Kind::kEnd, nullptr, ""}); }

GradientTable::Kind GradientTable::KindOf(const std::string& op) const {
  const auto found = entries_.find(op);
  return found == entries_.end() ? Kind::kUnknown : found->second.kind;
}

const GradientRule& GradientTable::Rule(const std::string& op) const {
  return entries_.at(op).rule;
}

const std::string& GradientTable::WhyNone(const std::string& op) const {
  return entries_.at(op).why;
}

void RegisterNoGradients(GradientTable& table) {
  for (const char* op :
       {"greater",    "greater_equal", "less",         "less_equal",    "equal",
        "not_equal",  "logical_and",   "logical_or",   "logical_not",   "reduce_any",
        "reduce_all", "argmax",        "floor_divide", "modulo",        "hash_bucket",
        "sign",       "floor",         "ceil",         "round",         "stop_gradient",
        "zeros_like", "ones_like",     "count",        "random_uniform"}) {
    table.AddZero(op);
  }
  for (const char* op : {"slice_grad", "concat_piece"}) {
    table.AddNone(op, "it is itself a gradient, and second derivatives of it are not there");
  }
  for (const OpDef* def : AllOps().All()) {
    if (def->internal) {
      table.AddNone(def->name, "it is made after gradients are");
    } else if (def->source != OpSource::kNone || def->has_effect()) {
      table.AddEnd(def->name);
    }
  }
}

const GradientTable& AllGradients() {
  static const GradientTable* const table = [] {
    auto* made = new GradientTable;
    RegisterMathGradients(*made);
    RegisterReductionGradients(*made);
    RegisterArrayGradients(*made);
    RegisterNeuralGradients(*made);
    RegisterNoGradients(*made);
    return made;
  }();
  return *table;
}

}  // namespace mu
