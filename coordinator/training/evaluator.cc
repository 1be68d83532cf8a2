#include "coordinator/training/evaluator.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "coordinator/cluster/completion_queue.h"
#include "coordinator/training/batch_order.h"

namespace mu {
namespace {

// Whether the user has asked to stop meanwhile.
constexpr absl::Duration kLook = absl::Milliseconds(100);
// In order, results wait for those of a worker that is slow or hangs. So many records may wait
// before nothing more is scheduled.
constexpr uint64_t kMostWaitingRecords = uint64_t{1} << 24;

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
  MU_ASSIGN_OR_RETURN(auto batches_by_lease, coordinator.BatchesByLease(dataset));
  BatchOrder<BatchValues> order(std::move(batches_by_lease));
  uint64_t records = 0, steps_done = 0, scheduled = 0;
  uint64_t records_emitted = 0, batches_emitted = 0;
  CompletionQueue pending;

  const auto emit = [&](const BatchValues& batch) -> absl::Status {
    ++batches_emitted;
    records_emitted += static_cast<uint64_t>(batch.predictions.elements());
    const absl::Span<const float> labels =
        options.label.empty() ? absl::Span<const float>() : batch.labels.flat<float>();
    return on_batch(batch.predictions.flat<float>(), labels);
  };
  const auto stopped = [&]() -> absl::Status {
    if (options.stop == nullptr || options.stop->load() == 0) return absl::OkStatus();
    coordinator.Cancel();
    return absl::CancelledError("stopped");
  };
  const auto take = [&](const RemoteValue& done) -> absl::Status {
    const auto values = done.Fetch();
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
        if (options.in_order) {
          order.Add(range.lease->index(), range.first_batch + b, std::move(batch));
        } else {
          MU_RETURN_IF_ERROR(emit(batch));
        }
      }
    }
    while (const auto batch = order.Next()) MU_RETURN_IF_ERROR(emit(*batch));
    steps_done += values->steps();
    if (progress) progress(steps_done, total);
    return absl::OkStatus();
  };

  // Takes results as they come, until fewer than `most_pending` functions are unfinished.
  const auto take_results = [&](size_t most_pending) -> absl::Status {
    while (pending.size() >= most_pending ||
           (!pending.empty() && records - records_emitted >= kMostWaitingRecords)) {
      MU_RETURN_IF_ERROR(stopped());
      if (const auto done = pending.Next(kLook)) MU_RETURN_IF_ERROR(take(done->value));
    }
    return absl::OkStatus();
  };

  while (scheduled < total) {
    MU_RETURN_IF_ERROR(stopped());
    const int workers = std::max<int>(1, static_cast<int>(coordinator.Stats().workers_ready));
    const uint64_t share =
        std::max<uint64_t>(1, (total - scheduled) / (4 * static_cast<uint64_t>(workers)));
    const uint32_t steps = static_cast<uint32_t>(
        std::min<uint64_t>({options.steps_per_function, share, total - scheduled}));
    pending.Add(coordinator.Schedule(function, {.steps = steps}));
    scheduled += steps;
    const size_t in_flight = static_cast<size_t>(coordinator.runtime().options().in_flight);
    MU_RETURN_IF_ERROR(take_results(2 * in_flight * static_cast<size_t>(workers)));
  }
  MU_RETURN_IF_ERROR(take_results(1));
  MU_RETURN_IF_ERROR(coordinator.Join());
  if (batches_emitted != total || records_emitted != records) {
    return absl::InternalError(
        absl::StrCat("results are missing at the end of an evaluation: values of ", batches_emitted,
                     " of ", total, " batches and ", records_emitted, " of ", records,
                     " records were given out; this is a fault of this program, please report it"));
  }
  return records;
}

}  // namespace mu
