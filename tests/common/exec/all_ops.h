// The random inputs and the plain loops of all ops that have a kernel.
#pragma once

#include "tests/common/exec/general_op_cases.h"
#include "tests/common/exec/general_op_reference.h"
#include "tests/common/exec/neural_op_cases.h"
#include "tests/common/exec/neural_op_reference.h"

namespace mu::testing {

inline const std::map<std::string, CaseMaker>& AllCaseMakers() {
  static const auto* const makers = [] {
    auto* made = new std::map<std::string, CaseMaker>(CaseMakers());
    AddGeneralCaseMakers(*made);
    made->insert(NeuralCaseMakers().begin(), NeuralCaseMakers().end());
    return made;
  }();
  return *makers;
}

inline const std::map<std::string, Reference>& AllReferences() {
  static const auto* const references = [] {
    auto* made = new std::map<std::string, Reference>(References());
    AddGeneralReferences(*made);
    made->insert(NeuralReferences().begin(), NeuralReferences().end());
    return made;
  }();
  return *references;
}

}  // namespace mu::testing
