#include "coordinator/frontend/matrix_factorization.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"

namespace mu {
namespace {

absl::Status KeyError(absl::string_view key, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("model.matrix_factorization.", key, ": ", what));
}

constexpr float kInitialStddev = 0.05f;

}  // namespace

absl::StatusOr<std::unique_ptr<MatrixFactorization>> MatrixFactorization::FromConfig(
    const pb::MatrixFactorizationProto& config) {
  if (config.dim() == 0) return KeyError("dim", "must be above 0");
  if (config.users() <= 0) return KeyError("users", "must be above 0 and above every user id");
  if (config.items() <= 0) return KeyError("items", "must be above 0 and above every item id");
  if (config.user_column().empty())
    return KeyError("user_column", "must name a column of the data");
  if (config.item_column().empty())
    return KeyError("item_column", "must name a column of the data");
  if (config.rating_column().empty())
    return KeyError("rating_column", "must name a column of the data");
  if (!std::isfinite(config.global_mean())) return KeyError("global_mean", "must be finite");
  if (!std::isfinite(config.l2()) || config.l2() < 0) return KeyError("l2", "must not be negative");
  return std::unique_ptr<MatrixFactorization>(new MatrixFactorization(config));
}

absl::Status MatrixFactorization::Create(VariableFactory& factory) {
  const Normal small{0.0f, kInitialStddev};
  MU_ASSIGN_OR_RETURN(
      users_,
      factory.CreateEmbeddingTable(
          {.name = "user", .rows = config_.users(), .dim = config_.dim(), .initializer = small}));
  MU_ASSIGN_OR_RETURN(
      items_,
      factory.CreateEmbeddingTable(
          {.name = "item", .rows = config_.items(), .dim = config_.dim(), .initializer = small}));
  MU_ASSIGN_OR_RETURN(user_bias_, factory.CreateEmbeddingTable(
                                      {.name = "user_bias", .rows = config_.users(), .dim = 1}));
  MU_ASSIGN_OR_RETURN(item_bias_, factory.CreateEmbeddingTable(
                                      {.name = "item_bias", .rows = config_.items(), .dim = 1}));
  return absl::OkStatus();
}

ModelOutput MatrixFactorization::Build(FunctionBuilder&, const BatchRef& batch) {
  const Sym users = batch[config_.user_column()];
  const Sym items = batch[config_.item_column()];
  const Sym user = EmbeddingLookup(users_, users);
  const Sym item = EmbeddingLookup(items_, items);
  const Sym user_bias = EmbeddingLookup(user_bias_, users);
  const Sym item_bias = EmbeddingLookup(item_bias_, items);

  ModelOutput output;
  output.task = task();
  const Sym bias = Reshape(user_bias + item_bias, {-1});
  output.prediction = ReduceSum(user * item, {1}) + bias + config_.global_mean();
  if (!batch.Has(config_.rating_column())) return output;
  output.label = batch[config_.rating_column()];
  output.loss = MeanSquaredError(output.prediction, output.label);
  if (config_.l2() > 0) {
    const Sym squares = ReduceSum(Square(user), {1}) + ReduceSum(Square(item), {1}) +
                        ReduceSum(Square(user_bias), {1}) + ReduceSum(Square(item_bias), {1});
    output.loss = output.loss + ReduceMean(squares) * config_.l2();
  }
  return output;
}

std::vector<pb::ColumnSchema> MatrixFactorization::Columns() const {
  return {MakeColumn(config_.user_column(), kInt64, {kUnknownDim}),
          MakeColumn(config_.item_column(), kInt64, {kUnknownDim}),
          MakeColumn(config_.rating_column(), kFloat32, {kUnknownDim})};
}

std::map<std::string, int64_t> MatrixFactorization::IdBounds() const {
  if (config_.user_column() == config_.item_column()) {
    return {{config_.user_column(), std::min(config_.users(), config_.items())}};
  }
  return {{config_.user_column(), config_.users()}, {config_.item_column(), config_.items()}};
}

}  // namespace mu
