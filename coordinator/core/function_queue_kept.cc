// Finished functions that the queue keeps for repeats, and the memory that they take.
#include <algorithm>
#include <string>
#include <utility>

#include "coordinator/core/function_queue.h"

namespace mu {
namespace {

constexpr size_t kMapNode = 48;  // what a std::map adds to an entry, with the allocator's own

// Short names have their place in the string itself.
size_t HeapBytes(const std::string& name) {
  return name.capacity() > std::string().capacity() ? name.capacity() + 1 : 0;
}

size_t OwnBytes(const FunctionQueue::Function& function) {
  return sizeof(std::pair<FunctionId, FunctionQueue::Function>) + kMapNode +
         HeapBytes(function.work.name) + function.batches.capacity() * sizeof(BatchRange) +
         function.samples.capacity() * sizeof(uint32_t) +
         function.avoid.capacity() * sizeof(WorkerId);
}

}  // namespace

void FunctionQueue::Keep(FunctionId id, Function function) {
  kept_bytes_.Add(OwnBytes(function));
  for (const BatchRange& range : function.batches)
    kept_bytes_.AddShared(range.lease.get(), [&] { return range.lease->SpaceUsedLong(); });
  const FunctionWork& work = function.work;
  kept_bytes_.AddShared(work.args.get(), [&] {
    size_t bytes = 0;
    for (const auto& arg : *work.args) bytes += arg.SpaceUsedLong();
    return bytes;
  });
  kept_bytes_.AddShared(work.assignment.get(), [&] {
    return work.assignment->variable.capacity() + work.assignment->value.SpaceUsedLong() +
           work.assignment->rows.capacity() * sizeof(int64_t);
  });
  kept_.emplace(id, std::move(function));
  ++uncovered_;  // it had not finished when the newest point was begun
}

FunctionQueue::Function FunctionQueue::TakeKept(std::map<FunctionId, Function>::iterator it) {
  Function function = std::move(it->second);
  kept_.erase(it);
  kept_bytes_.Remove(OwnBytes(function));
  for (const BatchRange& range : function.batches) kept_bytes_.RemoveShared(range.lease.get());
  kept_bytes_.RemoveShared(function.work.args.get());
  kept_bytes_.RemoveShared(function.work.assignment.get());
  covered_bytes_ = std::min(covered_bytes_, kept_bytes_.bytes());
  return function;
}

void FunctionQueue::ForgetKept() {
  kept_.clear();
  kept_bytes_ = KeptBytes();
  covered_bytes_ = 0;
  uncovered_ = 0;
}

}  // namespace mu
