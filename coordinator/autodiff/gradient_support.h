// Shared by the files of gradient rules.
#pragma once

#include <vector>

#include "coordinator/autodiff/gradient_table.h"
#include "coordinator/frontend/ops.h"

namespace mu {

using Syms = std::vector<Sym>;

// `gradient`, which has the shape that `like` was broadcast to, summed to like's own.
Sym Unbroadcast(const Sym& gradient, const Sym& like);

std::vector<int64_t> IntsOf(const ForwardOp& op, absl::string_view attr);

// A value of a reduction's shape (attributes "axes" and "keep_dims") stretched over what was
// reduced.
Sym Spread(const ForwardOp& op, const Sym& value);

}  // namespace mu
