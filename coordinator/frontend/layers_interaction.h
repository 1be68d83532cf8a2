// Layers that multiply features with each other.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/frontend/layers.h"
#include "coordinator/frontend/neural_ops.h"

namespace mu {

struct CrossNetworkOptions {
  int64_t layers = 3;
  std::optional<Optimizer> optimizer = std::nullopt;
};

// x [batch, width] -> [batch, width] by layers x' = x0 * (x W + b) + x, where x0 is the input (Wang
// et al., "DCN V2", 2021). Layers (Dense) NAME_0, NAME_1, ...
class CrossNetwork {
 public:
  static absl::StatusOr<CrossNetwork> Create(VariableFactory& factory, const std::string& name,
                                             int64_t width,
                                             const CrossNetworkOptions& options = {});
  Sym operator()(const Operand& x) const;

  const std::vector<Dense>& layers() const { return layers_; }

 private:
  std::vector<Dense> layers_;
};

struct FmOptions {
  Initializer initializer = Uniform{-0.05f, 0.05f};  // of the numbers' vectors
  std::optional<Optimizer> optimizer = std::nullopt;
};

// The second-order part of a factorization machine: the sum, over all pairs of features, of the
// product of their vectors. Features are vectors [batch, dim], and numbers [batch, numbers], each
// of which scales a vector of its own: variable NAME/numbers [numbers, dim], if there are any.
class Fm {
 public:
  static absl::StatusOr<Fm> Create(VariableFactory& factory, const std::string& name,
                                   int64_t numbers, int64_t dim, const FmOptions& options = {});
  // -> [batch]. `numbers` is an empty Sym if there are none.
  Sym operator()(const std::vector<Sym>& vectors, const Sym& numbers = {},
                 const char* file = __builtin_FILE(), int line = __builtin_LINE()) const;
  // The same before the sum over the vectors' elements: -> [batch, dim] (the bi-interaction pooling
  // of He and Chua, "Neural Factorization Machines", 2017).
  Sym Products(const std::vector<Sym>& vectors, const Sym& numbers = {},
               const char* file = __builtin_FILE(), int line = __builtin_LINE()) const;

 private:
  Variable number_vectors_;
  int64_t dim_ = 0;
};

}  // namespace mu
