#include "psserver/round_mean.h"

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
  for (const PushPlan::VariablePart& part : push.variables()) AddVariable(part, share);
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
    values.sum.resize((bytes + sizeof(uint64_t) - 1) / sizeof(uint64_t));
  }
  const bool averages = part.kind == muster::VariableUpdate::GRADIENT || part.moving_average;
  const float factor = averages ? share : 1.0f;
  char* const sum = reinterpret_cast<char*>(values.sum.data());
  const char* from = static_cast<const char*>(part.update);
  if (!part.rows.has_value()) return AddShareOf(part.dtype, factor, from, bytes, sum);
  const size_t row_bytes = part.partition->row_bytes();
  for (const int64_t row : *part.rows) {
    AddShareOf(part.dtype, factor, from, row_bytes, sum + static_cast<size_t>(row) * row_bytes);
    from += row_bytes;
  }
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
    } else {
      values.partition->AssignAdd(values.sum.data());
    }
  }
  for (auto& [key, rows] : rows_) rows.partition->Push(rows.ids, rows.sums.data(), rows.rates);
  return static_cast<uint32_t>(variables_.size() + rows_.size());
}

}  // namespace mu
