#include "psserver/core/file_memory.h"

#include <utility>

#include "common/base/status.h"

namespace mu {
namespace {

// Ranges of steps.
constexpr size_t kMostMemory = size_t{1} << 24;

}  // namespace

WrittenMemory::WrittenMemory(const CutMemory* cut) : cut_(cut) {
  if (cut_->inherited == nullptr) return;
  int64_t next = 1;
  for (const AppliedSteps& steps : cut_->inherited->memories())
    numbers_.push_back(steps.empty() ? 0 : next++);
}

void WrittenMemory::ForEach(
    absl::FunctionRef<void(const std::vector<AppliedSteps::Range>&)> write) const {
  write(cut_->applied);
  for (size_t i = 0; i < numbers_.size(); ++i) {
    if (numbers_[i] != 0) write(cut_->inherited->memories()[i].Ranges());
  }
}

std::vector<int64_t> WrittenMemory::NumbersOf(const PartitionKey& partition) const {
  std::vector<int64_t> numbers;
  if (cut_->inherited == nullptr) return numbers;
  for (const size_t memory : cut_->inherited->MemoriesOf(partition)) {
    if (numbers_[memory] != 0) numbers.push_back(numbers_[memory]);
  }
  return numbers;
}

absl::Status ReadMemory::Inherit(const PartitionKey& partition, absl::Span<const int64_t> numbers,
                                 absl::FunctionRef<Steps(int64_t number)> read) {
  for (const int64_t number : numbers) MU_RETURN_IF_ERROR(Inherit(partition, number, read));
  return Inherit(partition, /*number=*/0, read);
}

absl::Status ReadMemory::Inherit(const PartitionKey& partition, int64_t number,
                                 absl::FunctionRef<Steps(int64_t number)> read) {
  auto taken = taken_.find(number);
  if (taken == taken_.end()) {
    MU_ASSIGN_OR_RETURN(const std::vector<AppliedSteps::Range> ranges, read(number));
    AppliedSteps steps;
    for (const AppliedSteps::Range& range : ranges) {
      if (range.function >= low_water_) steps.AddRange(range);
    }
    if (steps.entries() + state_->entries() > kMostMemory)
      return absl::ResourceExhaustedError("the checkpoint remembers more steps than fit");
    const int64_t place = steps.empty() ? -1 : static_cast<int64_t>(state_->Add(std::move(steps)));
    taken = taken_.emplace(number, place).first;
  }
  if (taken->second >= 0) state_->Inherit(partition, static_cast<size_t>(taken->second));
  return absl::OkStatus();
}

}  // namespace mu
