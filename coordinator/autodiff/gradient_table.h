// One rule per op: given the gradient of an op's output, those of its inputs, built with the ops
// that users have.
//
// Immutable once built; safe from all threads. Every op of the op table is in exactly one list here
// (a test fails otherwise): it has a rule, or its derivative is zero, or it has none.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "common/graph/op_table.h"
#include "coordinator/frontend/sym.h"

namespace mu {

// The forward node that a rule differentiates.
struct ForwardOp {
  AttrReader attrs;
  std::vector<Sym> inputs;
  Sym output;
  Sym dy;                    // gradient of output
  std::vector<bool> wanted;  // per input: does its gradient lead to a trainable parameter?

  bool Wants(size_t input) const { return wanted[input]; }
};

// Gradients of the inputs, in order; an empty Sym where none is wanted or it is zero.
using GradientRule = std::function<std::vector<Sym>(const ForwardOp& op)>;

class GradientTable {
 public:
  // Each aborts for an op that the op table does not have, or that is here already: a bug of ours.
  void AddRule(const std::string& op, GradientRule rule);
  // The output does not change, or only in jumps, when the inputs do.
  void AddZero(const std::string& op);
  // A loss that reaches a parameter through it is refused. `why` ends the sentence "... has no
  // gradient: ".
  void AddNone(const std::string& op, std::string why);
  // Sources and effects, which end a path (RegisterNoGradients adds them all): parameters' reads
  // are gradients.cc's business.
  void AddEnd(const std::string& op);

  enum class Kind { kRule, kZero, kNone, kEnd, kUnknown };
  Kind KindOf(const std::string& op) const;
  const GradientRule& Rule(const std::string& op) const;
  const std::string& WhyNone(const std::string& op) const;

 private:
  struct Entry {
    Kind kind;
    GradientRule rule;
    std::string why;
  };
  void AddEntry(const std::string& op, Entry entry);

  std::map<std::string, Entry> entries_;
};

const GradientTable& AllGradients();

void RegisterMathGradients(GradientTable& table);       // math_gradients.cc
void RegisterReductionGradients(GradientTable& table);  // reduction_gradients.cc
void RegisterArrayGradients(GradientTable& table);      // array_gradients.cc
void RegisterNeuralGradients(GradientTable& table);     // neural_gradients.cc
void RegisterNoGradients(GradientTable& table);         // gradient_table.cc

}  // namespace mu
