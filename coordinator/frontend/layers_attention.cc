#include "coordinator/frontend/layers_attention.h"

#include "absl/strings/str_cat.h"
#include "coordinator/frontend/op_support.h"

namespace mu {

absl::StatusOr<MultiHeadAttention> MultiHeadAttention::Create(VariableFactory& factory,
                                                              const std::string& name,
                                                              int64_t width,
                                                              const AttentionOptions& options) {
  if (width <= 0 || options.heads <= 0 || width % options.heads != 0) {
    return absl::InvalidArgumentError(absl::StrCat("layer \"", name, "\": ", options.heads,
                                                   " heads do not divide a width of ", width,
                                                   "; make the width a multiple of the heads"));
  }
  MultiHeadAttention layer;
  layer.width_ = width;
  layer.heads_ = options.heads;
  layer.dropout_ = options.dropout;
  const auto create = [&](const char* part) {
    return Dense::Create(factory, absl::StrCat(name, "/", part), width, width,
                         {.optimizer = options.optimizer});
  };
  MU_ASSIGN_OR_RETURN(layer.query_, create("query"));
  MU_ASSIGN_OR_RETURN(layer.key_, create("key"));
  MU_ASSIGN_OR_RETURN(layer.value_, create("value"));
  MU_ASSIGN_OR_RETURN(layer.output_, create("output"));
  return layer;
}

Sym MultiHeadAttention::operator()(const Operand& x, const AttentionMask& mask) const {
  return (*this)(x, x, mask);
}

// [batch, s, width] -> [batch, heads, s, width / heads]
Sym MultiHeadAttention::Heads(const Sym& x) const {
  return Transpose(Reshape(x, {-1, x.shape()[1], heads_, width_ / heads_}), {0, 2, 1, 3});
}

Sym MultiHeadAttention::operator()(const Operand& query, const Operand& keys,
                                   const AttentionMask& mask) const {
  const CallScope scope(query.place());
  const Sym from = query.Bind();
  const Sym to = keys.Bind();
  for (const Sym& x : {from, to}) {
    if (!x.status().ok()) return x;
    if (x.valid() && (x.shape().rank() != 3 || x.shape()[1] < 0)) {
      return x.graph()->Fail(
          "attention",
          absl::InvalidArgumentError(absl::StrCat(
              "takes [batch, length, width] with a known length, got ", x.spec().ToString())),
          query.place());
    }
  }
  Sym bias;
  if (mask.keys.graph() != nullptr) bias = KeyMaskBias(mask.keys);
  if (mask.causal) {
    const Sym causal = CausalBias(from.shape()[1]);
    bias = bias.graph() == nullptr ? causal : bias + causal;
  }
  const Sym mixed = ScaledDotProductAttention(Heads(query_(from)), Heads(key_(to)),
                                              Heads(value_(to)), bias, dropout_);
  return output_(Reshape(Transpose(mixed, {0, 2, 1, 3}), {-1, from.shape()[1], width_}));
}

}  // namespace mu
