// One differentiable use of each op, for gradient_check_test.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "coordinator/frontend/builder.h"

namespace mu {

struct CheckInput {
  Shape shape;
  float low = -1.0f;
  float high = 1.0f;
  std::vector<float> values = {};  // given instead of a range
};

struct CheckCase {
  std::string op;    // that the graph must contain
  std::string name;  // of the case, beside the op
  std::vector<CheckInput> variables;
  // The batch has label [3], dense [3, 13] and ids [3, 26] below 7, all of unknown batch size.
  std::function<Sym(const std::vector<Variable>& v, const BatchRef& batch)> build;
};

std::vector<CheckCase> MathCheckCases();     // math_cases_test.cc
std::vector<CheckCase> ArrayCheckCases();    // array_cases_test.cc
std::vector<CheckCase> GeneralCheckCases();  // general_cases_test.cc
std::vector<CheckCase> NeuralCheckCases();   // neural_cases_test.cc

}  // namespace mu
