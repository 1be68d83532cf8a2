#include "psserver/round_mean.h"

#include <algorithm>
#include <optional>
#include <string>

#include "common/base/flush_denormals.h"
#include "common/tensor/dtype.h"
#include "psserver/store/add_elements.h"

namespace mu {
namespace {

void AddShare(float share, const float* from, size_t count, float* to) {
  for (size_t i = 0; i < count; ++i) to[i] += share * from[i];
}

// Whole numbers are added up.
void AddShareOf(muster::DType dtype, float share, const char* from, size_t bytes, char* sum) {
  if (dtype != kFloat32) return AddElements(dtype, from, bytes, sum);
  AddShare(share, reinterpret_cast<const float*>(from), bytes / sizeof(float),
           reinterpret_cast<float*>(sum));
}

}  // namespace

void RoundMean::Add(const PushPlan& push, uint32_t weight) {
  const ScopedFlushDenormals flush;
  const float share =
      weight_ == 0 ? 0.0f : static_cast<float>(static_cast<double>(weight) / weight_);
  for (const PushPlan::VariablePart& part : push.variables()) {
    if (part.kind == muster::VariableUpdate::ASSIGN) {
      AddNewValues(part, weight);
    } else {
      AddVariable(part, share);
    }
  }
  for (size_t s = 0; s < push.segments().size(); ++s) {
    AddRows(push.segments()[s], push.gradients()[s], push.rates()[s], sum_rows_ ? 1.0f : share);
  }
}

void RoundMean::AddVariable(const PushPlan::VariablePart& part, float share) {
  const size_t bytes = part.partition->value_bytes();
  const auto [it, first] = variables_.try_emplace({part.key, part.kind});
  Values& values = it->second;
  if (first) {
    values.partition = part.partition;
    values.rates = part.rates;
    values.moving_part = part.moving_part;
    values.sum.resize((bytes + sizeof(uint64_t) - 1) / sizeof(uint64_t));
  }
  const bool averages = part.kind == muster::VariableUpdate::GRADIENT || part.moving_average;
  const float factor = averages ? share : 1.0f;
  values.share += factor;
  char* const sum = reinterpret_cast<char*>(values.sum.data());
  const char* from = static_cast<const char*>(part.update);
  if (!part.rows.has_value()) return AddShareOf(part.dtype, factor, from, bytes, sum);
  const size_t row_bytes = part.partition->row_bytes();
  for (const int64_t row : *part.rows) {
    AddShareOf(part.dtype, factor, from, row_bytes, sum + static_cast<size_t>(row) * row_bytes);
    from += row_bytes;
  }
}

// The same as if each contribution had added its part of the way, of the values at the beginning.
void RoundMean::Move(Values* values) {
  float* const mean = reinterpret_cast<float*>(values->sum.data());
  if (values->share > 0) {
    for (size_t i = 0; i < values->partition->elements(); ++i) mean[i] /= values->share;
  }
  // A function may bring several values of one variable; it must not move beyond their mean.
  values->partition->MoveTowards(mean, std::min(1.0f, values->moving_part * values->share));
}

void RoundMean::AddNewValues(const PushPlan::VariablePart& part, uint32_t weight) {
  const char* const from = static_cast<const char*>(part.update);
  if (part.rows.has_value()) {
    NewRows& rows = new_rows_[part.key];
    rows.partition = part.partition;
    for (size_t i = 0; i < part.rows->size(); ++i)
      rows.values[(*part.rows)[i]] = from + i * part.partition->row_bytes();
    return;
  }
  NewValues& values = new_values_[part.key];
  values.partition = part.partition;
  if (part.dtype != kFloat32) {
    values.last = from;
    return;
  }
  values.weight += weight;
  values.mean.resize(part.partition->elements());
  if (weight == 0) return;
  const float* const numbers = reinterpret_cast<const float*>(from);
  for (size_t i = 0; i < values.mean.size(); ++i)
    values.mean[i] += (numbers[i] - values.mean[i]) * (weight / values.weight);
}

void RoundMean::AddRows(const RowSegment& segment, const float* gradients, const StepRates& rates,
                        float share) {
  const TableDefinition& table = *segment.table->definition;
  const auto [it, first] =
      rows_.try_emplace({PartitionKey::Kind::kTable, table.proto.id(), segment.number});
  Rows& rows = it->second;
  if (first) {
    rows.partition = segment.partition;
    rows.rates = rates;
  }
  for (size_t i = 0; i < segment.ids.size(); ++i) {
    const auto [place, added] = rows.places.try_emplace(segment.ids[i], rows.ids.size());
    if (added) {
      rows.ids.push_back(segment.ids[i]);
      rows.sums.resize(rows.sums.size() + table.dim);
    }
    AddShare(share, gradients + i * table.dim, table.dim,
             rows.sums.data() + place->second * table.dim);
  }
}

uint32_t RoundMean::Apply() {
  const ScopedFlushDenormals flush;
  for (auto& [key, values] : variables_) {
    if (key.second == muster::VariableUpdate::GRADIENT) {
      values.partition->ApplyGradient(reinterpret_cast<const float*>(values.sum.data()),
                                      values.rates);
    } else if (values.moving_part > 0) {
      Move(&values);
    } else {
      values.partition->AssignAdd(values.sum.data());
    }
  }
  for (auto& [key, rows] : rows_) rows.partition->Push(rows.ids, rows.sums.data(), rows.rates);
  for (const auto& [key, values] : new_values_) {
    const std::vector<float> mean(values.mean.begin(), values.mean.end());
    values.partition->Update(std::nullopt, values.last != nullptr ? values.last : mean.data());
  }
  for (const auto& [key, rows] : new_rows_) {
    std::vector<int64_t> places;
    std::string values;
    for (const auto& [row, from] : rows.values) {
      places.push_back(row);
      values.append(from, rows.partition->row_bytes());
    }
    rows.partition->Update(places, values.data());
  }
  return static_cast<uint32_t>(variables_.size() + rows_.size() + new_values_.size() +
                               new_rows_.size());
}

}  // namespace mu
