#include "psserver/store/variable_partition.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "common/base/flush_denormals.h"
#include "common/base/status.h"
#include "common/env/work_progress.h"
#include "common/exec/gemm.h"
#include "common/sharding/initializer.h"
#include "common/tensor/dtype.h"
#include "psserver/store/add_elements.h"

namespace mu {
namespace {

// Slots begin at a multiple of 64 bytes.
constexpr size_t Aligned(size_t bytes) { return (bytes + 63) / 64 * 64; }

}  // namespace

VariableDefinition::VariableDefinition(const pb::VariableProto& variable)
    : proto(variable),
      optimizer(variable.optimizer(), static_cast<size_t>(LayoutOf(variable).elements_per_row)),
      layout(LayoutOf(variable)) {}

int64_t VariableDefinition::RowsOf(uint32_t partition) const {
  const int p = static_cast<int>(partition);
  const int64_t end =
      p + 1 < proto.partition_starts_size() ? proto.partition_starts(p + 1) : layout.rows;
  return end - proto.partition_starts(p);
}

VariablePartition::VariablePartition(std::shared_ptr<const VariableDefinition> definition,
                                     uint32_t partition)
    : definition_(std::move(definition)),
      rows_(static_cast<size_t>(definition_->RowsOf(partition))),
      elements_(definition_->ElementsOf(partition)),
      value_bytes_(definition_->BytesOf(partition)),
      slot_bytes_(definition_->SlotBytesOf(partition)) {}

size_t VariablePartition::PartBytes(size_t part) const {
  return part == 0 ? value_bytes_ : SlotElements(part - 1) * sizeof(float);
}

size_t VariablePartition::PartBegin(size_t part) const {
  if (part == 0) return 0;
  size_t begin = Aligned(value_bytes_);
  for (size_t k = 1; k < part; ++k) begin += PartBytes(k);
  return begin;
}

absl::StatusOr<std::unique_ptr<VariablePartition>> VariablePartition::Create(
    std::shared_ptr<const VariableDefinition> definition, uint32_t partition) {
  auto result = std::unique_ptr<VariablePartition>(new VariablePartition(definition, partition));
  const size_t value_bytes = Aligned(result->value_bytes_);
  MU_ASSIGN_OR_RETURN(result->memory_, ZeroMemory::Allocate(value_bytes + result->slot_bytes_));
  char* data = result->memory_.data();
  const RowInitializer initializer(definition->proto.initializer(), definition->proto.name());
  if (definition->proto.dtype() == kFloat32) {
    result->slots_ = reinterpret_cast<float*>(data + value_bytes);
    float* slot = result->slots_;
    for (size_t s = 0; s < definition->optimizer.slots().size(); ++s) {
      slot = std::fill_n(slot, result->SlotElements(s), definition->optimizer.slots()[s].initial);
    }
    const int64_t begin = definition->proto.partition_starts(static_cast<int>(partition));
    const size_t columns = static_cast<size_t>(definition->layout.elements_per_row);
    // Rows without columns may be any number.
    const int64_t rows = columns == 0 ? 0 : definition->RowsOf(partition);
    for (int64_t r = 0; r < rows; ++r) {
      initializer.FillRow(static_cast<uint64_t>(begin + r),
                          reinterpret_cast<float*>(data) + r * columns, columns);
      WorkProgress::Moved(columns * sizeof(float));
    }
  } else if (definition->proto.dtype() == kInt64) {
    std::fill_n(reinterpret_cast<int64_t*>(data), result->elements_, initializer.integer());
  } else {
    std::fill_n(reinterpret_cast<int32_t*>(data), result->elements_,
                static_cast<int32_t>(initializer.integer()));
  }
  return result;
}

void VariablePartition::CountRead(uint64_t bytes) const {
  reads_.fetch_add(1, std::memory_order_relaxed);
  read_bytes_.fetch_add(bytes, std::memory_order_relaxed);
}

void VariablePartition::ReadRows(size_t first, size_t count, void* out) const {
  const size_t bytes = count * row_bytes();
  CountRead(bytes);
  ReaderMutexLock lock(&mutex_);
  if (bytes > 0) std::memcpy(out, memory_.data() + first * row_bytes(), bytes);
}

void VariablePartition::Multiply(const float* x, int64_t batch, bool back, float* out) const {
  const int64_t rows = static_cast<int64_t>(rows_);
  const int64_t columns = definition_->layout.elements_per_row;
  const ScopedFlushDenormals flush;
  CountRead(static_cast<uint64_t>(batch * (rows + columns)) * sizeof(float));
  ReaderMutexLock lock(&mutex_);
  const float* const values = reinterpret_cast<const float*>(memory_.data());
  if (back) {
    Gemm(false, false, batch, columns, rows, x, values, out, {});
  } else {
    Gemm(false, true, batch, rows, columns, x, values, out, {});
  }
}

void VariablePartition::AssignRows(absl::Span<const int64_t> rows, const char* values) {
  WriterMutexLock lock(&mutex_);
  PutRows(rows, values);
}

void VariablePartition::Assign(const void* value) {
  WriterMutexLock lock(&mutex_);
  PutAll(value);
}

void VariablePartition::Update(std::optional<absl::Span<const int64_t>> rows, const void* values) {
  WriterMutexLock lock(&mutex_);
  if (rows.has_value()) {
    PutRows(*rows, static_cast<const char*>(values));
  } else {
    PutAll(values);
  }
  ++updates_;
}

void VariablePartition::PutRows(absl::Span<const int64_t> rows, const char* values) {
  const size_t bytes = row_bytes();
  BeforeChange();
  load_.Updated(rows.size() * bytes);
  if (bytes == 0) return;
  for (size_t i = 0; i < rows.size(); ++i) {
    const size_t row = static_cast<size_t>(rows[i]);
    std::memcpy(memory_.data() + row * bytes, values + i * bytes, bytes);
    AdoptRows(row, 1);
  }
}

void VariablePartition::PutAll(const void* value) {
  BeforeChange();
  load_.Updated(value_bytes_);
  if (value_bytes_ > 0) std::memcpy(memory_.data(), value, value_bytes_);
  AdoptRows(0, rows_);
}

void VariablePartition::AdoptRows(size_t first, size_t count) {
  if (slots_ == nullptr || elements_ == 0) return;
  definition_->optimizer.AdoptRows(reinterpret_cast<const float*>(memory_.data()), slots_, rows_,
                                   first, count);
}

void VariablePartition::ApplyGradient(const float* gradient, const StepRates& rates) {
  WriterMutexLock lock(&mutex_);
  BeforeChange();
  ++updates_;
  load_.Updated(value_bytes_);
  if (elements_ == 0) return;
  definition_->optimizer.ApplyRows(rates, reinterpret_cast<float*>(memory_.data()), slots_,
                                   gradient, rows_);
}

void VariablePartition::AssignAdd(const void* delta) {
  WriterMutexLock lock(&mutex_);
  BeforeChange();
  ++updates_;
  load_.Updated(value_bytes_);
  AddElements(definition_->proto.dtype(), delta, value_bytes_, memory_.data());
  AdoptRows(0, rows_);
}

void VariablePartition::MoveTowards(const float* values, float part) {
  WriterMutexLock lock(&mutex_);
  BeforeChange();
  ++updates_;
  load_.Updated(value_bytes_);
  float* const own = reinterpret_cast<float*>(memory_.data());
  for (size_t i = 0; i < elements_; ++i) own[i] += part * (values[i] - own[i]);
}

void VariablePartition::AddRows(absl::Span<const int64_t> rows, const void* delta) {
  const size_t bytes = row_bytes();
  const char* from = static_cast<const char*>(delta);
  WriterMutexLock lock(&mutex_);
  BeforeChange();
  ++updates_;
  load_.Updated(rows.size() * bytes);
  for (const int64_t row : rows) {
    AddElements(definition_->proto.dtype(), from, bytes,
                memory_.data() + static_cast<size_t>(row) * bytes);
    AdoptRows(static_cast<size_t>(row), 1);
    from += bytes;
  }
}

void VariablePartition::SetValue(const void* in) {
  WriterMutexLock lock(&mutex_);
  BeforeChange();
  if (value_bytes_ > 0) std::memcpy(memory_.data(), in, value_bytes_);
}

void VariablePartition::SetSlot(size_t slot, const float* in) {
  WriterMutexLock lock(&mutex_);
  const size_t bytes = PartBytes(1 + slot);
  if (bytes > 0) std::memcpy(memory_.data() + PartBegin(1 + slot), in, bytes);
}

uint64_t VariablePartition::updates() const {
  ReaderMutexLock lock(&mutex_);
  return updates_;
}

PartitionLoad VariablePartition::load() const {
  ReaderMutexLock lock(&mutex_);
  PartitionLoad load = load_;
  load.reads = reads_.load(std::memory_order_relaxed);
  load.read_bytes = read_bytes_.load(std::memory_order_relaxed);
  return load;
}

void VariablePartition::SetUpdates(uint64_t updates) {
  WriterMutexLock lock(&mutex_);
  updates_ = updates;
}

void VariablePartition::BeforeChange() {
  if (cut_ == nullptr || cut_->copied || value_bytes_ == 0) return;
  auto copy = ZeroMemory::Allocate(memory_.size());
  if (!copy.ok()) return cut_->copies->Fail();
  std::memcpy(copy->data(), memory_.data(), memory_.size());
  cut_->copy = *std::move(copy);
  cut_->copied = true;
  cut_->copies->Add(memory_.size());
}

void VariablePartition::BeginCut(CutCopies* copies) {
  WriterMutexLock lock(&mutex_);
  cut_ = std::unique_ptr<Cut>(new Cut{copies, updates_});
}

uint64_t VariablePartition::CutUpdates() const {
  ReaderMutexLock lock(&mutex_);
  return cut_ == nullptr ? 0 : cut_->updates;
}

void VariablePartition::ReadCut(size_t part, size_t offset, size_t size, void* out) const {
  if (size == 0) return;
  ReaderMutexLock lock(&mutex_);
  if (cut_ == nullptr) {
    std::memset(out, 0, size);
    return;
  }
  const ZeroMemory& from = cut_->copied ? cut_->copy : memory_;
  std::memcpy(out, from.data() + PartBegin(part) + offset, size);
}

void VariablePartition::EndCut() {
  std::unique_ptr<Cut> cut;
  {
    WriterMutexLock lock(&mutex_);
    cut = std::move(cut_);
  }
  if (cut != nullptr && cut->copied) cut->copies->Release(memory_.size());
}

}  // namespace mu
