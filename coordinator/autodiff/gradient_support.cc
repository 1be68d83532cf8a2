#include "coordinator/autodiff/gradient_support.h"

namespace mu {

Sym Unbroadcast(const Sym& gradient, const Sym& like) {
  const bool same = like.shape().IsFullyKnown() && gradient.shape() == like.shape();
  return same ? gradient : ReduceToLike(gradient, like);
}

std::vector<int64_t> IntsOf(const ForwardOp& op, absl::string_view attr) {
  const auto values = op.attrs.Ints(attr);
  return {values.begin(), values.end()};
}

Sym Spread(const ForwardOp& op, const Sym& value) {
  // Kept axes have size 1 and a reduction over everything is a scalar: both broadcast as they are.
  const bool broadcasts = op.attrs.Bool("keep_dims") || op.attrs.Ints("axes").empty();
  return BroadcastLike(value, op.inputs[0],
                       broadcasts ? std::vector<int64_t>() : IntsOf(op, "axes"));
}

}  // namespace mu
