#include "coordinator/frontend/layers_interaction.h"

#include "absl/strings/str_cat.h"
#include "coordinator/frontend/op_support.h"

namespace mu {

absl::StatusOr<CrossNetwork> CrossNetwork::Create(VariableFactory& factory, const std::string& name,
                                                  int64_t width,
                                                  const CrossNetworkOptions& options) {
  CrossNetwork network;
  for (int64_t i = 0; i < options.layers; ++i) {
    MU_ASSIGN_OR_RETURN(Dense layer, Dense::Create(factory, absl::StrCat(name, "_", i), width,
                                                   width, {.optimizer = options.optimizer}));
    network.layers_.push_back(std::move(layer));
  }
  return network;
}

Sym CrossNetwork::operator()(const Operand& x) const {
  const CallScope scope(x.place());
  const Sym first = x.Bind();
  Sym value = first;
  for (const Dense& layer : layers_) value = first * layer(value) + value;
  return value;
}

absl::StatusOr<Fm> Fm::Create(VariableFactory& factory, const std::string& name, int64_t numbers,
                              int64_t dim, const FmOptions& options) {
  if (numbers < 0 || dim <= 0) {
    return absl::InvalidArgumentError(absl::StrCat("layer \"", name, "\" cannot have ", numbers,
                                                   " numbers and vectors of ", dim));
  }
  Fm layer;
  layer.dim_ = dim;
  if (numbers == 0) return layer;
  MU_ASSIGN_OR_RETURN(layer.number_vectors_,
                      factory.CreateVariable({.name = name + "/numbers",
                                              .shape = {numbers, dim},
                                              .initializer = options.initializer,
                                              .optimizer = options.optimizer}));
  return layer;
}

Sym Fm::operator()(const std::vector<Sym>& vectors, const Sym& numbers, const char* file,
                   int line) const {
  const CallScope scope({file, line});
  return ReduceSum(Products(vectors, numbers, file, line), {1});
}

// The sum over all pairs is half of (square of the sum - sum of the squares).
Sym Fm::Products(const std::vector<Sym>& vectors, const Sym& numbers, const char* file,
                 int line) const {
  const CallScope scope({file, line});
  Sym sum;
  Sym squares;
  if (!vectors.empty()) {
    std::vector<Sym> rows;
    for (const Sym& vector : vectors) rows.push_back(Reshape(vector, {-1, 1, dim_}));
    const Sym stacked = Concat(rows, 1);
    sum = ReduceSum(stacked, {1});
    squares = ReduceSum(Square(stacked), {1});
  }
  if (number_vectors_.valid()) {
    const Sym own = Read(number_vectors_);
    const Sym number_sum = MatMul(numbers, own);
    const Sym number_squares = MatMul(Square(numbers), Square(own));
    sum = vectors.empty() ? number_sum : sum + number_sum;
    squares = vectors.empty() ? number_squares : squares + number_squares;
  }
  return (Square(sum) - squares) * 0.5f;
}

}  // namespace mu
