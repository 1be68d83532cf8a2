// Variables and tables in memory, with SGD: what a function's step reads and updates, without
// servers.
#pragma once

#include <algorithm>
#include <cstring>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/sharding/parameter_access.h"
#include "common/tensor/tensor.h"
#include "proto/table.pb.h"

namespace mu::testing {

class FakeParameterAccess : public ParameterAccess {
 public:
  struct Table {
    std::string name;
    int64_t dim = 0;
    std::vector<float> values;  // [rows, dim]
    int64_t rows() const { return dim == 0 ? 0 : static_cast<int64_t>(values.size()) / dim; }
    float* row(int64_t id) { return values.data() + id * dim; }
  };

  explicit FakeParameterAccess(float learning_rate = 1.0f) : learning_rate_(learning_rate) {}

  // Ids count from 1 in the order of creation, apart for variables and tables.
  uint32_t AddVariable(std::string name, Tensor value) {
    const uint32_t id = static_cast<uint32_t>(variables_.size()) + 1;
    Tensor own(value.dtype(), value.shape());
    if (value.bytes() > 0) std::memcpy(own.raw(), value.raw(), value.bytes());
    variables_.emplace(id, std::make_pair(std::move(name), std::move(own)));
    return id;
  }
  uint32_t AddTable(std::string name, int64_t dim, std::vector<float> values) {
    const uint32_t id = static_cast<uint32_t>(tables_.size()) + 1;
    tables_.emplace(id, Table{std::move(name), dim, std::move(values)});
    return id;
  }
  Tensor& variable(uint32_t id) { return variables_.at(id).second; }
  Table& table(uint32_t id) { return tables_.at(id); }

  // One server, one partition each.
  muster::RoutingProto routing() const {
    muster::RoutingProto routing;
    routing.set_version(1);
    routing.add_servers()->set_address("fake");
    for (const auto& [id, variable] : variables_) {
      muster::VariableProto* const proto = routing.add_variables();
      proto->set_id(id);
      proto->set_name(variable.first);
      proto->set_dtype(variable.second.dtype());
      *proto->mutable_shape() = variable.second.shape().ToProto();
      proto->mutable_optimizer()->mutable_sgd()->set_learning_rate(learning_rate_);
      proto->add_partition_starts(0);
      proto->add_placement(0);
    }
    for (const auto& [id, table] : tables_) {
      muster::TableProto* const proto = routing.add_tables();
      proto->set_id(id);
      proto->set_name(table.name);
      proto->set_rows(table.rows());
      proto->set_dim(table.dim);
      proto->mutable_optimizer()->mutable_sgd()->set_learning_rate(learning_rate_);
      proto->set_partitions(1);
      proto->add_placement(0);
    }
    return routing;
  }

  absl::Status Pull(absl::Span<const VariableRead> variables,
                    absl::Span<const RowsRead> rows) override {
    ++pulls;
    MU_RETURN_IF_ERROR(pull_status);
    for (const VariableRead& read : variables) {
      const Tensor& value = variables_.at(read.variable).second;
      const size_t row_bytes = RowBytes(value);
      const size_t bytes = read.rows < 0 ? value.bytes() : read.rows * row_bytes;
      std::memcpy(read.out, static_cast<const char*>(value.raw()) + read.first_row * row_bytes,
                  bytes);
    }
    for (const RowsRead& read : rows) {
      Table& table = tables_.at(read.table);
      MU_RETURN_IF_ERROR(CheckIds(table, read.ids));
      for (size_t i = 0; i < read.ids.size(); ++i) {
        std::memcpy(read.out + i * table.dim, table.row(read.ids[i]), table.dim * sizeof(float));
      }
    }
    return absl::OkStatus();
  }

  absl::Status Multiply(absl::Span<const ProductRead> products) override {
    ++multiplications;
    for (const ProductRead& product : products) {
      const Tensor& w = variables_.at(product.variable).second;
      const int64_t n = w.shape()[0], k = w.shape()[1];
      std::fill_n(product.out, product.batch * (product.back ? k : n), 0.0f);
      for (int64_t b = 0; b < product.batch; ++b) {
        for (int64_t i = 0; i < n; ++i) {
          for (int64_t j = 0; j < k; ++j) {
            const float weight = w.data<float>()[i * k + j];
            if (product.back) {
              product.out[b * k + j] += product.x[b * n + i] * weight;
            } else {
              product.out[b * n + i] += product.x[b * k + j] * weight;
            }
          }
        }
      }
    }
    return absl::OkStatus();
  }

  absl::Status Push(absl::Span<const VariableWrite> variables,
                    absl::Span<const RowsWrite> rows) override {
    ++pushes;
    MU_RETURN_IF_ERROR(push_status);
    for (const VariableWrite& write : variables) Apply(write);
    for (const RowsWrite& write : rows) {
      Table& table = tables_.at(write.table);
      MU_RETURN_IF_ERROR(CheckIds(table, write.ids));
      for (size_t i = 0; i < write.ids.size(); ++i) {
        float* const row = table.row(write.ids[i]);
        for (int64_t d = 0; d < table.dim; ++d)
          row[d] -= learning_rate_ * write.gradients[i * table.dim + d];
      }
    }
    return absl::OkStatus();
  }

  int pulls = 0;
  int pushes = 0;
  int multiplications = 0;
  std::map<uint32_t, float> moving_parts;  // by variable: kAssignAdd moves it towards the value
  absl::Status pull_status;                // what the next calls return
  absl::Status push_status;

 private:
  static absl::Status CheckIds(const Table& table, absl::Span<const int64_t> ids) {
    std::set<int64_t> seen;
    for (const int64_t id : ids) {
      if (id < 0 || id >= table.rows()) {
        return absl::OutOfRangeError(
            absl::StrCat("table \"", table.name, "\" has no row ", id, ", it has ", table.rows()));
      }
      if (!seen.insert(id).second)
        return absl::InternalError(absl::StrCat("id ", id, " comes twice"));
    }
    return absl::OkStatus();
  }

  static size_t RowBytes(const Tensor& value) {
    return value.shape().rank() == 0 || value.shape()[0] == 0 ? value.bytes()
                                                              : value.bytes() / value.shape()[0];
  }

  void Apply(const VariableWrite& write) {
    Tensor& value = variables_.at(write.variable).second;
    if (write.has_rows()) return Scatter(write, &value);
    if (write.kind == VariableWrite::kAssign) {
      std::memcpy(value.raw(), write.value, value.bytes());
      return;
    }
    if (write.kind == VariableWrite::kProductGradient) return Multiplied(write, &value);
    for (int64_t i = 0; i < value.elements(); ++i) {
      if (write.kind == VariableWrite::kGradient) {
        value.data<float>()[i] -= learning_rate_ * static_cast<const float*>(write.value)[i];
      } else if (const auto part = moving_parts.find(write.variable); part != moving_parts.end()) {
        float& own = value.data<float>()[i];
        own += part->second * (static_cast<const float*>(write.value)[i] - own);
      } else if (value.dtype() == kFloat32) {
        value.data<float>()[i] += static_cast<const float*>(write.value)[i];
      } else if (value.dtype() == kInt32) {
        value.data<int32_t>()[i] += static_cast<const int32_t*>(write.value)[i];
      } else {
        value.data<int64_t>()[i] += static_cast<const int64_t*>(write.value)[i];
      }
    }
  }

  static void Scatter(const VariableWrite& write, Tensor* value) {
    const size_t width = RowBytes(*value) / ElementSize(value->dtype());
    for (size_t i = 0; i < write.rows.size(); ++i) {
      if (write.kind == VariableWrite::kScatterUpdate) {
        const size_t bytes = RowBytes(*value);
        std::memcpy(static_cast<char*>(value->raw()) + static_cast<size_t>(write.rows[i]) * bytes,
                    static_cast<const char*>(write.value) + i * bytes, bytes);
        continue;
      }
      for (size_t j = 0; j < width; ++j) {
        const size_t to = write.rows[i] * width + j, from = i * width + j;
        if (value->dtype() == kFloat32) {
          value->data<float>()[to] += static_cast<const float*>(write.value)[from];
        } else if (value->dtype() == kInt32) {
          value->data<int32_t>()[to] += static_cast<const int32_t*>(write.value)[from];
        } else {
          value->data<int64_t>()[to] += static_cast<const int64_t*>(write.value)[from];
        }
      }
    }
  }

  void Multiplied(const VariableWrite& write, Tensor* value) {
    const int64_t n = value->shape()[0], k = value->shape()[1];
    const float* const dy = static_cast<const float*>(write.value);
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t j = 0; j < k; ++j) {
        float gradient = 0;
        for (int64_t b = 0; b < write.batch; ++b) gradient += dy[b * n + i] * write.x[b * k + j];
        value->data<float>()[i * k + j] -= learning_rate_ * gradient;
      }
    }
  }

  const float learning_rate_;
  std::map<uint32_t, std::pair<std::string, Tensor>> variables_;
  std::map<uint32_t, Table> tables_;
};

}  // namespace mu::testing
