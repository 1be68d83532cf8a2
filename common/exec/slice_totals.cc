#include "common/exec/slice_totals.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/graph/verifier.h"

namespace mu {
namespace {

bool Reads(const Plan& plan, int value) {
  return std::any_of(plan.nodes.begin(), plan.nodes.end(), [value](const PlannedNode& node) {
    return std::find(node.inputs.begin(), node.inputs.end(), value) != node.inputs.end();
  });
}

// total += factor * x, or the same without a total before.
template <typename T>
void AddScaled(const View& x, T factor, bool first, T* total) {
  const T* const values = x.as<T>();
  const int64_t n = x.elements();
  if (first) {
    for (int64_t i = 0; i < n; ++i) total[i] = factor * values[i];
  } else {
    for (int64_t i = 0; i < n; ++i) total[i] += factor * values[i];
  }
}

}  // namespace

SliceTotals::SliceTotals(const Plan& slice, const Plan& finish) : plan_(slice) {
  for (const PlannedAccumulation& planned : slice.accumulations) {
    Total& total = totals_.emplace_back();
    total.planned = &planned;
    total.value.dtype = slice.specs[planned.first_output].dtype;
    if (!planned.of_rows()) continue;
    const int64_t dim = slice.specs[planned.inputs[2]].shape[1];
    total.rows = std::make_unique<RowTotals>(dim, Reads(finish, planned.first_output + 2));
  }
}

void SliceTotals::Begin() {
  for (Total& total : totals_) {
    total.value.data = nullptr;
    if (total.rows != nullptr) total.rows->Begin();
  }
}

absl::Status SliceTotals::AddTo(Total* total, const Run& slice, float part) {
  const std::vector<int>& inputs = total->planned->inputs;
  if (total->rows != nullptr) {
    return total->rows->Add(slice.value(inputs[0]), slice.value(inputs[1]), slice.value(inputs[2]),
                            part);
  }
  const View& x = slice.value(inputs[0]);
  const bool first = total->value.data == nullptr;
  if (first) {
    total->value.shape = x.shape;
    total->value.data = ReserveFor(x.shape, x.dtype, total->memory);
    if (total->value.data == nullptr) return NoMemory(x.shape);
  } else if (total->value.shape != x.shape) {
    return absl::InvalidArgumentError(
        absl::StrCat("is ", x.shape.ToString(), " in one slice of the batch and ",
                     total->value.shape.ToString(), " in those before"));
  }
  void* const data = total->value.data;
  switch (x.dtype) {
    case kInt32:  // integers wrap around, as those of ops
      AddScaled<uint32_t>(x, 1, first, static_cast<uint32_t*>(data));
      break;
    case kInt64:
      AddScaled<uint64_t>(x, 1, first, static_cast<uint64_t*>(data));
      break;
    default:
      AddScaled<float>(x, total->planned->sums ? 1.0f : part, first, static_cast<float*>(data));
  }
  return absl::OkStatus();
}

absl::Status SliceTotals::Add(const Run& slice, float part) {
  for (Total& total : totals_) {
    MU_RETURN_IF_ERROR(NodeError(plan_.function, total.planned->node, AddTo(&total, slice, part)));
  }
  return absl::OkStatus();
}

void SliceTotals::BindTo(Run* finish) const {
  for (const Total& total : totals_) {
    const int first = total.planned->first_output;
    if (total.rows == nullptr) {
      finish->Bind(first, total.value);
      continue;
    }
    finish->Bind(first, total.rows->ids());
    finish->Bind(first + 1, total.rows->gradients());
    finish->Bind(first + 2, total.rows->rows());
  }
}

}  // namespace mu
