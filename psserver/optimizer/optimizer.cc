#include "psserver/optimizer/optimizer.h"

#include "common/base/check.h"
#include "common/optimizer/optimizer_settings.h"

namespace mu {

RowOptimizer::RowOptimizer(const muster::OptimizerProto& proto, size_t width)
    : rule_(MakeUpdateRule(WithDefaults(proto))),
      slots_(SlotsOf(proto, width)),
      width_(width),
      slot_floats_(SlotFloats(slots_)) {
  MU_CHECK(slots_.size() <= kMostSlots);
  size_t offset = width;
  for (size_t k = 0; k < slots_.size(); ++k) {
    offsets_[k] = offset;
    offset += slots_[k].width;
  }
}

void RowOptimizer::ApplyRows(const StepRates& rates, float* value, float* slots,
                             const float* gradient, size_t rows) const {
  size_t offsets[kMostSlots] = {};
  for (size_t k = 1; k < slots_.size(); ++k)
    offsets[k] = offsets[k - 1] + rows * slots_[k - 1].width;
  if (!rule_->by_row())
    return rule_->Apply(rates, value, {slots, offsets}, gradient, rows * width_);
  for (size_t r = 0; r < rows; ++r) {
    rule_->Apply(rates, value, {slots, offsets}, gradient, width_);
    for (size_t k = 0; k < slots_.size(); ++k) offsets[k] += slots_[k].width;
    value += width_;
    gradient += width_;
  }
}

void RowOptimizer::AdoptRows(const float* value, float* slots, size_t rows, size_t first,
                             size_t count) const {
  if (rule_ == nullptr) return;
  size_t offsets[kMostSlots] = {};
  size_t begin = 0;
  for (size_t k = 0; k < slots_.size(); ++k) {
    offsets[k] = begin + first * slots_[k].width;
    begin += rows * slots_[k].width;
  }
  value += first * width_;
  if (!rule_->by_row()) return rule_->Adopt(value, {slots, offsets}, count * width_);
  for (size_t r = 0; r < count; ++r) {
    rule_->Adopt(value, {slots, offsets}, width_);
    for (size_t k = 0; k < slots_.size(); ++k) offsets[k] += slots_[k].width;
    value += width_;
  }
}

}  // namespace mu
