// A VariableFactory over FakeParameterAccess: what models create, in memory, with values that do
// not vary. And parameters that record the gradients they are pushed.
#pragma once

#include <cmath>
#include <map>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "common/base/hash.h"
#include "coordinator/frontend/variable_factory.h"
#include "tests/testing/fake_parameters.h"

namespace mu::testing {

// Applies nothing; keeps what the last step pushed, by name: whole variables, and tables as [rows,
// dim].
class RecordingParameters : public FakeParameterAccess {
 public:
  absl::Status Push(absl::Span<const VariableWrite> variables,
                    absl::Span<const RowsWrite> rows) override {
    if (apply) {
      MU_RETURN_IF_ERROR(FakeParameterAccess::Push(variables, rows));
    } else {
      ++pushes;
    }
    gradients.clear();
    for (const VariableWrite& write : variables) {
      if (write.kind != VariableWrite::kGradient) continue;
      const float* values = static_cast<const float*>(write.value);
      gradients[names[{false, write.variable}]].assign(
          values, values + variable(write.variable).elements());
    }
    for (const RowsWrite& write : rows) {
      Table& target = table(write.table);
      std::vector<float>& gradient = gradients[target.name];
      gradient.assign(target.values.size(), 0.0f);
      for (size_t i = 0; i < write.ids.size(); ++i) {
        for (int64_t d = 0; d < target.dim; ++d) {
          gradient[write.ids[i] * target.dim + d] = write.gradients[i * target.dim + d];
        }
      }
    }
    return absl::OkStatus();
  }

  explicit RecordingParameters(float learning_rate = 1.0f) : FakeParameterAccess(learning_rate) {}

  bool apply = false;
  std::map<std::string, std::vector<float>> gradients;
  std::map<std::pair<bool, uint32_t>, std::string> names;  // (is a table, id)
};

class FakeFactory : public VariableFactory {
 public:
  explicit FakeFactory(float learning_rate = 1.0f) : parameters(learning_rate) {}

  absl::StatusOr<Variable> CreateVariable(const VariableSpec& spec) override {
    MU_ASSIGN_OR_RETURN(pb::VariableProto proto, spec.ToProto());
    if (!taken_.insert(spec.name).second) return absl::AlreadyExistsError(spec.name);
    Tensor value(spec.dtype, spec.shape);
    if (spec.dtype == kFloat32) {
      const std::vector<float> values = Values(spec.name, spec.initializer, value.elements());
      std::copy(values.begin(), values.end(), value.data<float>());
    } else {
      std::memset(value.raw(), 0, value.bytes());
    }
    proto.set_id(parameters.AddVariable(spec.name, value));
    parameters.names[{false, proto.id()}] = spec.name;
    if (spec.moving_part > 0) parameters.moving_parts[proto.id()] = spec.moving_part;
    if (!proto.has_optimizer() && proto.trainable()) {
      proto.mutable_optimizer()->mutable_sgd()->set_learning_rate(1.0f);
    }
    return Variable(std::move(proto));
  }

  absl::StatusOr<EmbeddingTable> CreateEmbeddingTable(const EmbeddingTableSpec& spec) override {
    MU_ASSIGN_OR_RETURN(pb::TableProto proto, spec.ToProto());
    if (!taken_.insert(spec.name).second) return absl::AlreadyExistsError(spec.name);
    proto.set_id(parameters.AddTable(spec.name, spec.dim,
                                     Values(spec.name, spec.initializer, spec.rows * spec.dim)));
    parameters.names[{true, proto.id()}] = spec.name;
    if (!proto.has_optimizer()) proto.mutable_optimizer()->mutable_sgd()->set_learning_rate(1.0f);
    return EmbeddingTable(std::move(proto));
  }

  RecordingParameters parameters;

 private:
  // Seeded by the name. Normal ones as a sum of uniform ones of the same deviation: near enough for
  // tests.
  static std::vector<float> Values(const std::string& name, const Initializer& initializer,
                                   int64_t count) {
    SplitMix random(HashString(name));
    std::vector<float> values(static_cast<size_t>(count), 0.0f);
    for (float& value : values) {
      if (const auto* constant = std::get_if<Constant>(&initializer)) value = constant->value;
      if (const auto* uniform = std::get_if<Uniform>(&initializer)) {
        value = uniform->low + static_cast<float>(random.Unit()) * (uniform->high - uniform->low);
      }
      if (const auto* normal = std::get_if<Normal>(&initializer)) {
        double sum = -6.0;
        for (int i = 0; i < 12; ++i) sum += random.Unit();
        value = normal->mean + normal->stddev * static_cast<float>(sum);
      }
    }
    return values;
  }

  std::set<std::string> taken_;
};

}  // namespace mu::testing
