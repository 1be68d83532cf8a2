#include "psserver/push.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/all_finite.h"
#include "common/base/flush_denormals.h"
#include "common/base/status.h"
#include "common/exec/gemm.h"
#include "common/optimizer/staleness.h"
#include "common/tensor/dtype.h"
#include "psserver/held.h"
#include "psserver/product.h"
#include "psserver/store/add_elements.h"

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

bool HasProducts(const pb::PushRequest& request) {
  return std::any_of(
      request.variables().begin(), request.variables().end(),
      [](const auto& update) { return update.kind() == pb::VariableUpdate::PRODUCT_GRADIENT; });
}

absl::StatusOr<PushPlan> PushPlan::Check(const StoreDirectory& directory,
                                         const pb::PushRequest& request,
                                         absl::Span<const char> payload, ComputeThreads* threads) {
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
  MU_RETURN_IF_ERROR(plan.ComputeProducts(threads));
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
  MU_ASSIGN_OR_RETURN(const StoredVariable* variable,
                      HeldVariable(directory, update.variable(), update.partition()));
  const VariableDefinition& definition = *variable->definition;
  const std::string& name = definition.proto.name();
  const bool is_gradient = update.kind() == pb::VariableUpdate::GRADIENT ||
                           update.kind() == pb::VariableUpdate::PRODUCT_GRADIENT;
  if (is_gradient && !definition.optimizer.takes_gradients()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "variable '", name,
        "' has no optimizer, so it takes no gradients; give it one or use assign_add"));
  }
  const float moving_part = definition.proto.moving_part();
  if (moving_part > 0 && update.kind() == pb::VariableUpdate::SCATTER_ADD) {
    return absl::InvalidArgumentError(absl::StrCat(
        "variable '", name, "' has a moving_part, so it takes no scatter_add; use assign_add"));
  }
  VariablePartition* partition = variable->partitions[update.partition()].get();
  MU_ASSIGN_OR_RETURN(const Given given, UpdateOf(*variable, update, reader));
  const bool product = update.kind() == pb::VariableUpdate::PRODUCT_GRADIENT;
  if (!product) last_product_.reset();
  if (!product && definition.proto.dtype() == kFloat32 &&
      !AllFinite(reinterpret_cast<const float*>(given.values), given.elements)) {
    return NotFinite("variable", name);
  }
  StepRates rates;
  if (is_gradient) {
    MU_ASSIGN_OR_RETURN(rates, RatesOf(definition.optimizer, "variable", name));
  }
  const bool assigns = update.kind() == pb::VariableUpdate::ASSIGN ||
                       update.kind() == pb::VariableUpdate::SCATTER_UPDATE;
  variables_.push_back({VariableOf(update), partition,
                        is_gradient ? pb::VariableUpdate::GRADIENT
                        : assigns   ? pb::VariableUpdate::ASSIGN
                                    : pb::VariableUpdate::ASSIGN_ADD,
                        definition.proto.dtype(),
                        definition.proto.moving_average() || moving_part > 0, moving_part,
                        given.values, rates, given.rows});
  return absl::OkStatus();
}

absl::StatusOr<PushPlan::Given> PushPlan::UpdateOf(const StoredVariable& variable,
                                                   const pb::VariableUpdate& update,
                                                   PayloadReader* reader) {
  const VariablePartition& partition = *variable.partitions[update.partition()];
  absl::StatusOr<Given> given = Given{.elements = partition.elements()};
  switch (update.kind()) {
    case pb::VariableUpdate::GRADIENT:
    case pb::VariableUpdate::ASSIGN_ADD:
    case pb::VariableUpdate::ASSIGN: {
      MU_ASSIGN_OR_RETURN(given->values, reader->Take<char>(partition.value_bytes()));
      break;
    }
    case pb::VariableUpdate::SCATTER_ADD:
    case pb::VariableUpdate::SCATTER_UPDATE:
      given = Scattered(variable, update, reader);
      break;
    case pb::VariableUpdate::PRODUCT_GRADIENT:
      given = ProductGradient(variable, update, reader);
      break;
    default:
      return absl::InvalidArgumentError(absl::StrCat(
          "variable '", variable.definition->proto.name(), "': unknown kind of update ",
          update.kind(), "; start all daemons from the same version"));
  }
  reader->Align();
  return given;
}

absl::StatusOr<char*> PushPlan::Expand(const StoredVariable& variable,
                                       const pb::VariableUpdate& update, size_t bytes) {
  // A small request must not make a server fill its memory.
  if (!expanded_keys_.insert(VariableOf(update)).second) {
    return absl::InvalidArgumentError(absl::StrCat("variable '", variable.definition->proto.name(),
                                                   "' partition ", update.partition(),
                                                   " is updated twice in one push"));
  }
  return reinterpret_cast<char*>(expanded_.emplace_back((bytes + 7) / 8).data());
}

absl::StatusOr<PushPlan::Given> PushPlan::Scattered(const StoredVariable& variable,
                                                    const pb::VariableUpdate& update,
                                                    PayloadReader* reader) {
  const VariablePartition& partition = *variable.partitions[update.partition()];
  const size_t row_bytes = partition.row_bytes();
  MU_ASSIGN_OR_RETURN(const int64_t* rows, reader->Take<int64_t>(update.rows()));
  MU_ASSIGN_OR_RETURN(const char* from, reader->Take<char>(update.rows() * row_bytes));
  for (uint32_t i = 0; i < update.rows(); ++i) {
    if (rows[i] >= 0 && static_cast<uint64_t>(rows[i]) < partition.rows()) continue;
    return absl::OutOfRangeError(absl::StrCat(
        "row ", rows[i], " is outside of partition ", update.partition(), " of variable '",
        variable.definition->proto.name(), "', which has ", partition.rows(), " rows"));
  }
  std::vector<int64_t> each(rows, rows + update.rows());
  std::sort(each.begin(), each.end());
  each.erase(std::unique(each.begin(), each.end()), each.end());
  MU_ASSIGN_OR_RETURN(char* const values, Expand(variable, update, each.size() * row_bytes));
  for (uint32_t i = 0; i < update.rows() && row_bytes > 0; ++i, from += row_bytes) {
    const auto place = std::lower_bound(each.begin(), each.end(), rows[i]) - each.begin();
    char* const to = values + static_cast<size_t>(place) * row_bytes;
    if (update.kind() == pb::VariableUpdate::SCATTER_ADD) {
      AddElements(variable.definition->proto.dtype(), from, row_bytes, to);
    } else {
      std::memcpy(to, from, row_bytes);
    }
  }
  const size_t elements = each.size() * partition.columns();
  return Given{values, elements, scattered_rows_.emplace_back(std::move(each))};
}

absl::StatusOr<PushPlan::Given> PushPlan::ProductGradient(const StoredVariable& variable,
                                                          const pb::VariableUpdate& update,
                                                          PayloadReader* reader) {
  const VariablePartition& partition = *variable.partitions[update.partition()];
  const uint64_t batch = update.rows();
  MU_RETURN_IF_ERROR(CheckProduct(variable, batch));
  MU_ASSIGN_OR_RETURN(const float* dy, reader->Take<float>(batch * partition.rows()));
  reader->Align();
  if (!last_product_.has_value() || last_product_->variable != update.variable()) {
    MU_ASSIGN_OR_RETURN(const float* x, reader->Take<float>(batch * partition.columns()));
    last_product_ = {update.variable(), update.rows(), x};
  } else if (last_product_->rows != update.rows()) {
    return absl::InvalidArgumentError("the gradients of one product have batches of several sizes");
  }
  MU_ASSIGN_OR_RETURN(char* const gradient, Expand(variable, update, partition.value_bytes()));
  products_.push_back({&partition, &variable.definition->proto.name(), static_cast<int64_t>(batch),
                       dy, last_product_->x, reinterpret_cast<float*>(gradient)});
  return Given{gradient, partition.elements()};
}

absl::Status PushPlan::ComputeProducts(ComputeThreads* threads) {
  std::vector<char> finite(products_.size());
  threads->ForEach(products_.size(), [&](size_t p) {
    const Product& product = products_[p];
    const ScopedFlushDenormals flush;
    Gemm(/*transpose_a=*/true, /*transpose_b=*/false,
         static_cast<int64_t>(product.partition->rows()),
         static_cast<int64_t>(product.partition->columns()), product.batch, product.dy, product.x,
         product.gradient, {});
    finite[p] = AllFinite(product.gradient, product.partition->elements()) ? 1 : 0;
  });
  for (size_t p = 0; p < products_.size(); ++p) {
    if (finite[p] == 0) return NotFinite("variable", *products_[p].name);
  }
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
  for (VariablePart& part : variables_) {
    if (part.kind == pb::VariableUpdate::GRADIENT)
      part.rates.Scale(factor_of({PartitionKey::Kind::kVariable, part.key.id}));
  }
  const StoredTable* last = nullptr;
  float factor = 1;
  for (size_t s = 0; s < segments_.size(); ++s) {
    if (std::exchange(last, segments_[s].table) != segments_[s].table) {
      factor = factor_of({PartitionKey::Kind::kTable, segments_[s].table->definition->proto.id()});
    }
    rates_[s].Scale(factor);
  }
}

void PushPlan::Apply() {
  const ScopedFlushDenormals flush;
  for (const VariablePart& part : variables_) {
    if (part.kind == pb::VariableUpdate::GRADIENT) {
      part.partition->ApplyGradient(static_cast<const float*>(part.update), part.rates);
    } else if (part.kind == pb::VariableUpdate::ASSIGN) {
      part.partition->Update(part.rows, part.update);
    } else if (part.rows.has_value()) {
      part.partition->AddRows(*part.rows, part.update);
    } else if (part.moving_part > 0) {
      part.partition->MoveTowards(static_cast<const float*>(part.update), part.moving_part);
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
