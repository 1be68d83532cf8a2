#include "psserver/push.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/flush_denormals.h"
#include "common/base/status.h"
#include "common/optimizer/staleness.h"
#include "common/tensor/dtype.h"
#include "psserver/optimizer/all_finite.h"

namespace mu {
namespace {

absl::Status NotFinite(absl::string_view what, const std::string& name) {
  return absl::InvalidArgumentError(
      absl::StrCat("an update of ", what, " '", name,
                   "' holds NaN or infinity; nothing of this step was applied (lower the learning "
                   "rate, or look for a "
                   "division by zero or the logarithm of 0 in the loss)"));
}

PartitionKey VariableOf(const pb::VariableUpdate& update) {
  return {PartitionKey::Kind::kVariable, update.variable(), update.partition()};
}

}  // namespace

uint32_t CountPartitions(const pb::PushRequest& request) {
  uint32_t count = static_cast<uint32_t>(request.variables_size());
  for (const pb::TableKeys& keys : request.tables())
    count += static_cast<uint32_t>(keys.partitions_size());
  return count;
}

void VisitPartitions(const pb::PushRequest& request, PushPartitions::Visit visit) {
  for (const pb::VariableUpdate& update : request.variables()) visit(VariableOf(update));
  for (const pb::TableKeys& keys : request.tables()) {
    for (const uint32_t partition : keys.partitions())
      visit({PartitionKey::Kind::kTable, keys.table(), partition});
  }
}

absl::StatusOr<PushPlan> PushPlan::Check(const StoreDirectory& directory,
                                         const pb::PushRequest& request,
                                         absl::Span<const char> payload) {
  PushPlan plan(payload);
  plan.step_.job_step = request.job_step();
  if (request.has_rate_scale()) {
    const float scale = plan.step_.rate_scale = request.rate_scale();
    if (!(scale >= 0) || std::isinf(scale)) {
      return absl::InvalidArgumentError(
          absl::StrCat("the scale of the learning rate must be a number from 0, not ", scale));
    }
  }
  PayloadReader reader(plan.payload_->bytes());
  MU_RETURN_IF_ERROR(ResolveTables(directory, request.tables(), &reader, &plan.segments_));
  for (const pb::VariableUpdate& update : request.variables()) {
    MU_RETURN_IF_ERROR(plan.AddVariable(directory, update, &reader));
  }
  MU_RETURN_IF_ERROR(plan.AddGradients(&reader));
  MU_RETURN_IF_ERROR(reader.ExpectEnd());
  return plan;
}

absl::StatusOr<StepRates> PushPlan::RatesOf(const RowOptimizer& optimizer, absl::string_view what,
                                            const std::string& name) const {
  if (optimizer.needs_job_step() && step_.job_step == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("the optimizer of ", what, " '", name,
                     "' needs the step's place in the job, which the update does not say; start "
                     "all daemons from the same version"));
  }
  const StepRates rates = optimizer.RatesOf(step_);
  if (std::isfinite(rates.rate) && std::isfinite(rates.corrected_rate)) return rates;
  return absl::InvalidArgumentError(
      absl::StrCat("the learning rate of ", what, " '", name,
                   "', multiplied by its schedule, is too large for a float; lower it"));
}

absl::Status PushPlan::AddVariable(const StoreDirectory& directory,
                                   const pb::VariableUpdate& update, PayloadReader* reader) {
  const StoredVariable* variable = directory.variable(update.variable());
  if (variable == nullptr || update.partition() >= variable->partitions.size() ||
      variable->partitions[update.partition()] == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat("partition ", update.partition(),
                                                   " of the variable with id ", update.variable(),
                                                   " is not held here"));
  }
  const VariableDefinition& definition = *variable->definition;
  const std::string& name = definition.proto.name();
  if (update.kind() == pb::VariableUpdate::GRADIENT && !definition.optimizer.takes_gradients()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "variable '", name,
        "' has no optimizer, so it takes no gradients; give it one or use assign_add"));
  }
  if (update.kind() != pb::VariableUpdate::GRADIENT &&
      update.kind() != pb::VariableUpdate::ASSIGN_ADD) {
    return absl::InvalidArgumentError(
        absl::StrCat("variable '", name, "': unknown kind of update ", update.kind()));
  }
  VariablePartition* partition = variable->partitions[update.partition()].get();
  MU_ASSIGN_OR_RETURN(const char* bytes, reader->Take<char>(partition->value_bytes()));
  reader->Align();
  if (definition.proto.dtype() == kFloat32 &&
      !AllFinite(reinterpret_cast<const float*>(bytes), partition->elements())) {
    return NotFinite("variable", name);
  }
  StepRates rates;
  if (update.kind() == pb::VariableUpdate::GRADIENT) {
    MU_ASSIGN_OR_RETURN(rates, RatesOf(definition.optimizer, "variable", name));
  }
  variables_.push_back({VariableOf(update), partition, update.kind(), definition.proto.dtype(),
                        definition.proto.moving_average(), bytes, rates});
  return absl::OkStatus();
}

absl::Status PushPlan::AddGradients(PayloadReader* reader) {
  gradients_.reserve(segments_.size());
  rates_.reserve(segments_.size());
  const StoredTable* last = nullptr;
  StepRates rates;
  for (const RowSegment& segment : segments_) {
    const TableDefinition& table = *segment.table->definition;
    if (!table.optimizer.takes_gradients()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "table '", table.proto.name(), "' has no optimizer, so it takes no gradients"));
    }
    if (segment.table != last) {
      MU_ASSIGN_OR_RETURN(rates, RatesOf(table.optimizer, "table", table.proto.name()));
      last = segment.table;
    }
    const size_t floats = segment.ids.size() * table.dim;
    MU_ASSIGN_OR_RETURN(const float* gradients, reader->Take<float>(floats));
    if (!AllFinite(gradients, floats)) return NotFinite("table", table.proto.name());
    gradients_.push_back(gradients);
    rates_.push_back(rates);
  }
  return absl::OkStatus();
}

void PushPlan::Skip(const AdmittedPush& push) {
  if (push.inherited == nullptr) return;
  variables_.erase(
      std::remove_if(variables_.begin(), variables_.end(),
                     [&](const VariablePart& part) { return push.IsInherited(part.key); }),
      variables_.end());
  size_t kept = 0;
  for (size_t s = 0; s < segments_.size(); ++s) {
    const uint32_t table = segments_[s].table->definition->proto.id();
    if (push.IsInherited({PartitionKey::Kind::kTable, table, segments_[s].number})) continue;
    segments_[kept] = segments_[s];
    rates_[kept] = rates_[s];
    gradients_[kept++] = gradients_[s];
  }
  segments_.resize(kept);
  rates_.resize(kept);
  gradients_.resize(kept);
}

void PushPlan::Discount(const AdmittedPush& push, pb::StalenessDiscount discount) {
  if (discount == pb::STALENESS_DISCOUNT_NONE) return;
  const auto factor_of = [&](const ClockKey& key) {
    for (const PushGradient& gradient : push.staleness.gradients) {
      if (gradient.key == key) return DiscountOf(discount, gradient.late);
    }
    return 1.0f;
  };
  const auto scale = [](float factor, StepRates* rates) {
    rates->rate *= factor;
    rates->corrected_rate *= factor;
  };
  for (VariablePart& part : variables_) {
    if (part.kind == pb::VariableUpdate::GRADIENT)
      scale(factor_of({PartitionKey::Kind::kVariable, part.key.id}), &part.rates);
  }
  const StoredTable* last = nullptr;
  float factor = 1;
  for (size_t s = 0; s < segments_.size(); ++s) {
    if (std::exchange(last, segments_[s].table) != segments_[s].table) {
      factor = factor_of({PartitionKey::Kind::kTable, segments_[s].table->definition->proto.id()});
    }
    scale(factor, &rates_[s]);
  }
}

void PushPlan::Apply() {
  const ScopedFlushDenormals flush;
  for (const VariablePart& part : variables_) {
    if (part.kind == pb::VariableUpdate::GRADIENT) {
      part.partition->ApplyGradient(static_cast<const float*>(part.update), part.rates);
    } else {
      part.partition->AssignAdd(part.update);
    }
  }
  for (size_t s = 0; s < segments_.size(); ++s) {
    if (s + 1 < segments_.size()) segments_[s + 1].partition->Prefetch(segments_[s + 1].ids);
    segments_[s].partition->Push(segments_[s].ids, gradients_[s], rates_[s]);
  }
}

}  // namespace mu
