// What every op must infer and refuse: one table, used by op_table_test. An op without both kinds
// of cases fails it.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tests/common/graph/specs.h"

namespace mu {

struct InferCase {
  std::vector<TensorSpec> inputs;
  AttrMap attrs;
  std::vector<TensorSpec> outputs;  // expected, where refusal is empty
  std::string refusal;              // part of the expected message; empty: accepted
};

using OpCases = std::map<std::string, std::vector<InferCase>>;

inline InferCase Accepts(std::vector<TensorSpec> inputs, std::initializer_list<NamedAttr> attrs,
                         std::vector<TensorSpec> outputs) {
  return {std::move(inputs), MakeAttrs(attrs), std::move(outputs), ""};
}
inline InferCase Refuses(std::vector<TensorSpec> inputs, std::initializer_list<NamedAttr> attrs,
                         std::string message) {
  return {std::move(inputs), MakeAttrs(attrs), {}, std::move(message)};
}

void AddElementwiseCases(OpCases& cases);  // op_cases_math_test.cc
void AddMathCases(OpCases& cases);         // op_cases_math_test.cc
void AddArrayCases(OpCases& cases);        // op_cases_array_test.cc
void AddComparisonCases(OpCases& cases);   // op_cases_choice_test.cc, with the next four
void AddIntegerCases(OpCases& cases);
void AddReductionCases(OpCases& cases);
void AddLayoutCases(OpCases& cases);
void AddSequenceCases(OpCases& cases);
void AddNeuralCases(OpCases& cases);     // op_cases_neural_test.cc
void AddRandomCases(OpCases& cases);     // op_cases_random_test.cc
void AddGradientCases(OpCases& cases);   // op_cases_array_test.cc
void AddParameterCases(OpCases& cases);  // op_cases_parameter_test.cc, with sources

}  // namespace mu
