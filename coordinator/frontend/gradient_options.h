// What is done to the gradients of a step before they are pushed.
#pragma once

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace mu {

// In this order: penalties, clipping by value, by norm, by global norm, weight decay. 0: not done.
// A step's gradient of a table is that of the rows that the step uses: norms are of these, and
// penalties and weight decay act on a row only when a step uses it.
struct GradientOptions {
  // Parts of the loss: l1 * |w| and l2 / 2 * w^2 of every weight. Their gradients are clipped with
  // the others.
  float l1 = 0;
  float l2 = 0;
  // Each element is cut to [-clip_by_value, clip_by_value].
  float clip_by_value = 0;
  // The gradient of each variable and table is scaled down to this Euclidean norm at most.
  float clip_by_norm = 0;
  // All gradients of the step are scaled down together to this norm at most (Pascanu, Mikolov,
  // Bengio, "On the difficulty of training recurrent neural networks", 2013).
  float clip_by_global_norm = 0;
  // Added to the gradient after it was clipped, as PyTorch's optimizers do: weight_decay * w.
  float weight_decay = 0;

  bool any() const { return !(*this == GradientOptions()); }
  friend bool operator==(const GradientOptions&, const GradientOptions&) = default;
};

// INVALID_ARGUMENT, naming the option, unless all are finite and not negative.
absl::Status CheckGradientOptions(const GradientOptions& options);

// Whether `pattern` names it: it is the name, or a beginning of it and *.
bool MatchesName(absl::string_view pattern, absl::string_view name);

}  // namespace mu
