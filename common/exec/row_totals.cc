#include "common/exec/row_totals.h"

#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"

namespace mu {
namespace {

// Where there is memory for it, `buffer` has `size` bytes, with the `used` ones that it had.
bool Enlarge(size_t size, size_t used, AlignedBuffer* buffer) {
  AlignedBuffer larger;
  void* const memory = larger.TryReserve(size);
  if (memory == nullptr) return false;
  if (used > 0) std::memcpy(memory, buffer->Reserve(0), used);
  *buffer = std::move(larger);
  return true;
}

void* DataOf(const AlignedBuffer& buffer) { return const_cast<AlignedBuffer&>(buffer).Reserve(0); }

}  // namespace

void RowTotals::Begin() {
  count_ = 0;
  table_.emplace(&table_memory_, &tables_, capacity_);
}

absl::Status RowTotals::Grow(int64_t rows) {
  const int64_t room = rows + rows / 8;
  const size_t row = static_cast<size_t>(dim_) * sizeof(float);
  const size_t used = static_cast<size_t>(count_);
  if (!Enlarge(room * sizeof(int64_t), used * sizeof(int64_t), &ids_) ||
      !Enlarge(room * row, used * row, &gradients_) ||
      (keep_rows_ && !Enlarge(room * row, used * row, &rows_))) {
    return NoMemory(Shape({rows, dim_}));
  }
  capacity_ = room;
  table_.emplace(&table_memory_, &tables_, capacity_);
  const int64_t* const ids = this->ids().as<int64_t>();
  for (int64_t i = 0; i < count_; ++i) table_->FindOrAdd(ids[i], static_cast<int32_t>(i));
  return absl::OkStatus();
}

absl::Status RowTotals::Add(const View& ids, const View& gradients, const View& rows,
                            float weight) {
  const Shape expected({ids.elements(), dim_});
  for (const View* view : {&gradients, &rows}) {
    if (view->shape == expected) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("has ", view->shape.ToString(), " for ", ids.elements(), " rows of ", dim_));
  }
  if (count_ + ids.elements() > capacity_) MU_RETURN_IF_ERROR(Grow(count_ + ids.elements()));
  int64_t* const known = this->ids().as<int64_t>();
  float* const totals = this->gradients().as<float>();
  for (int64_t i = 0; i < ids.elements(); ++i) {
    const int64_t id = ids.as<int64_t>()[i];
    const int64_t at = table_->FindOrAdd(id, static_cast<int32_t>(count_));
    const float* const gradient = gradients.as<float>() + i * dim_;
    float* const total = totals + at * dim_;
    if (at < count_) {
      for (int64_t d = 0; d < dim_; ++d) total[d] += weight * gradient[d];
      continue;
    }
    known[count_++] = id;
    for (int64_t d = 0; d < dim_; ++d) total[d] = weight * gradient[d];
    if (!keep_rows_) continue;
    std::memcpy(this->rows().as<float>() + at * dim_, rows.as<float>() + i * dim_,
                static_cast<size_t>(dim_) * sizeof(float));
  }
  return absl::OkStatus();
}

View RowTotals::ids() const { return {kInt64, Shape({count_}), DataOf(ids_)}; }
View RowTotals::gradients() const { return {kFloat32, Shape({count_, dim_}), DataOf(gradients_)}; }
View RowTotals::rows() const { return {kFloat32, Shape({count_, dim_}), DataOf(rows_)}; }

}  // namespace mu
