// Who makes variables and tables: the coordinator in programs, a fake in tests. Layers and models
// ask it.
#pragma once

#include "absl/status/statusor.h"
#include "coordinator/frontend/handles.h"
#include "coordinator/frontend/specs.h"

namespace mu {

class VariableFactory {
 public:
  virtual ~VariableFactory() = default;
  // ALREADY_EXISTS for a taken name, INVALID_ARGUMENT for what makes no sense.
  virtual absl::StatusOr<Variable> CreateVariable(const VariableSpec& spec) = 0;
  virtual absl::StatusOr<EmbeddingTable> CreateEmbeddingTable(const EmbeddingTableSpec& spec) = 0;
};

}  // namespace mu
