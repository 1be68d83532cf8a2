#include "coordinator/training/evaluator.h"

#include <algorithm>
#include <deque>

#include "absl/strings/str_cat.h"

namespace mu {
namespace {

// Whether the user has asked to stop meanwhile.
constexpr absl::Duration kLook = absl::Milliseconds(100);

struct BatchValues {
  Tensor predictions;
  Tensor labels;
};

absl::Status CheckValues(const std::string& name, const Tensor& values, uint32_t records) {
  if (values.dtype() == kFloat32 && values.elements() == records) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("'", name, "' has type ", std::string(DTypeName(values.dtype())), " and shape ",
                   values.shape().ToString(), " for a batch of ", records,
                   " records; the model must give one float32 value for each"));
}

}  // namespace

absl::StatusOr<uint64_t> ForEachPrediction(
    Coordinator& coordinator, const Function& function, const Dataset& dataset,
    const EvalOptions& options, const OnBatch& on_batch,
    const std::function<void(uint64_t, uint64_t)>& progress) {
  if (dataset.proto().visitation() == pb::VISITATION_NONE) {
    return absl::InvalidArgumentError(
        "an evaluation uses each record once; visitation: none is for training");
  }
  MU_RETURN_IF_ERROR(coordinator.StartEpoch(dataset, 0));
  MU_ASSIGN_OR_RETURN(const uint64_t total, coordinator.BatchesInEpoch(dataset, 0));
  uint64_t records = 0, steps_done = 0, scheduled = 0;
  std::deque<RemoteValue> pending;
  // Batches that wait for earlier ones (in_order): by lease, then batch.
  std::map<std::pair<uint64_t, uint32_t>, BatchValues> waiting;
  std::pair<uint64_t, uint32_t> next = {0, 0};
  std::map<uint64_t, uint32_t> lease_batches;

  const auto emit = [&](const BatchValues& batch) -> absl::Status {
    const absl::Span<const float> labels =
        options.label.empty() ? absl::Span<const float>() : batch.labels.flat<float>();
    return on_batch(batch.predictions.flat<float>(), labels);
  };
  const auto stopped = [&]() -> absl::Status {
    if (options.stop == nullptr || options.stop->load() == 0) return absl::OkStatus();
    coordinator.Cancel();
    return absl::CancelledError("stopped");
  };
  const auto finish_oldest = [&]() -> absl::Status {
    const RemoteValue oldest = std::move(pending.front());
    pending.pop_front();
    while (!oldest.WaitFor(kLook)) MU_RETURN_IF_ERROR(stopped());
    auto values = oldest.Fetch();
    if (!values.ok()) {
      const absl::Status first = coordinator.Join();
      return first.ok() ? values.status() : first;
    }
    size_t step = 0;
    for (const auto& range : values->batches()) {
      for (uint32_t b = 0; b < range.batches && step < values->steps(); ++b, ++step) {
        BatchValues batch{Tensor(kFloat32, Shape{0}), Tensor(kFloat32, Shape{0})};
        if (values->samples(step) > 0) {
          MU_ASSIGN_OR_RETURN(batch.predictions, values->Get(step, options.prediction));
          MU_RETURN_IF_ERROR(
              CheckValues(options.prediction, batch.predictions, values->samples(step)));
          if (!options.label.empty()) {
            MU_ASSIGN_OR_RETURN(batch.labels, values->Get(step, options.label));
            MU_RETURN_IF_ERROR(CheckValues(options.label, batch.labels, values->samples(step)));
          }
        }
        records += values->samples(step);
        if (!options.in_order) {
          MU_RETURN_IF_ERROR(emit(batch));
          continue;
        }
        waiting[{range.lease->index(), range.first_batch + b}] = std::move(batch);
      }
    }
    while (!waiting.empty()) {
      auto first = waiting.begin();
      if (first->first != next) {
        // The next batch may be the first of the following lease.
        if (first->first.first != next.first + 1 || first->first.second != 0 ||
            lease_batches[next.first] != next.second) {
          break;
        }
      }
      MU_RETURN_IF_ERROR(emit(first->second));
      next = {first->first.first, first->first.second + 1};
      waiting.erase(first);
    }
    steps_done += values->steps();
    if (progress) progress(steps_done, total);
    return absl::OkStatus();
  };

  if (options.in_order) {
    MU_ASSIGN_OR_RETURN(lease_batches, coordinator.BatchesByLease(dataset));
  }
  while (scheduled < total) {
    MU_RETURN_IF_ERROR(stopped());
    const int workers = std::max<int>(1, static_cast<int>(coordinator.Stats().workers_ready));
    const uint64_t share =
        std::max<uint64_t>(1, (total - scheduled) / (4 * static_cast<uint64_t>(workers)));
    const uint32_t steps = static_cast<uint32_t>(
        std::min<uint64_t>({options.steps_per_function, share, total - scheduled}));
    pending.push_back(coordinator.Schedule(function, {.steps = steps}));
    scheduled += steps;
    const size_t in_flight = static_cast<size_t>(coordinator.runtime().options().in_flight);
    while (pending.size() >= 2 * in_flight * static_cast<size_t>(workers))
      MU_RETURN_IF_ERROR(finish_oldest());
  }
  while (!pending.empty()) {
    MU_RETURN_IF_ERROR(stopped());
    MU_RETURN_IF_ERROR(finish_oldest());
  }
  MU_RETURN_IF_ERROR(coordinator.Join());
  return records;
}

}  // namespace mu
