// Hands out variables and tables as a coordinator would, without a cluster: their definitions can
// be looked at, and functions that use them traced. Not thread safe.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "coordinator/frontend/variable_factory.h"

namespace mu {

class PaperFactory : public VariableFactory {
 public:
  // `default_optimizer`: of what names none; trainable variables and tables need one. `servers`: of
  // the cluster, which decide what tables it can hold that say no number of partitions; 0: of no
  // cluster in particular.
  explicit PaperFactory(Optimizer default_optimizer = Sgd{.learning_rate = 1.0f},
                        uint32_t servers = 0)
      : default_optimizer_(std::move(default_optimizer)), servers_(servers) {}

  absl::StatusOr<Variable> CreateVariable(const VariableSpec& spec) override;
  absl::StatusOr<EmbeddingTable> CreateEmbeddingTable(const EmbeddingTableSpec& spec) override;

  // Whether the variable or table has named no optimizer, and takes gradients.
  bool HasDefaultOptimizer(const std::string& name) const { return defaulted_.contains(name); }
  // In the order in which they were created.
  const std::vector<Variable>& variables() const { return variables_; }
  const std::vector<EmbeddingTable>& tables() const { return tables_; }

 private:
  absl::Status Claim(const std::string& name);

  const Optimizer default_optimizer_;
  const uint32_t servers_;
  std::set<std::string> names_;
  std::set<std::string> defaulted_;
  std::vector<Variable> variables_;
  std::vector<EmbeddingTable> tables_;
};

}  // namespace mu
