// Biased matrix factorisation: Koren, Bell, Volinsky, "Matrix Factorization Techniques for
// Recommender Systems" (2009).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/frontend/model.h"
#include "proto/job.pb.h"

namespace mu {

// rating = global_mean + user's bias + item's bias + user's vector . item's vector. Loss: mean
// squared error, plus l2 times the batch's mean of the squares of what it looked up. Tables user,
// item, user_bias, item_bias.
class MatrixFactorization : public Model {
 public:
  // INVALID_ARGUMENT naming the key.
  static absl::StatusOr<std::unique_ptr<MatrixFactorization>> FromConfig(
      const pb::MatrixFactorizationProto& config);

  absl::Status Create(VariableFactory& factory) override;
  ModelOutput Build(FunctionBuilder& builder, const BatchRef& batch) override;
  Task task() const override { return Task::kRegression; }
  std::vector<pb::ColumnSchema> Columns() const override;
  std::map<std::string, int64_t> IdBounds() const override;

 private:
  explicit MatrixFactorization(const pb::MatrixFactorizationProto& config) : config_(config) {}

  const pb::MatrixFactorizationProto config_;
  EmbeddingTable users_, items_, user_bias_, item_bias_;
};

}  // namespace mu
