#include "coordinator/training/evaluator.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "coordinator/cluster/completion_queue.h"
#include "coordinator/training/batch_order.h"
#include "coordinator/training/join_with_looks.h"

namespace mu {
namespace {

// Whether the user has asked to stop meanwhile.
constexpr absl::Duration kLook = absl::Milliseconds(100);
// In order, results wait for those of a worker that is slow or hangs. So many records may wait
// before nothing more is scheduled.
constexpr uint64_t kMostWaitingRecords = uint64_t{1} << 24;

// One pass over a dataset.
class Pass {
 public:
  Pass(Coordinator& coordinator, const ForEachBatchOptions& options,
       const OnEvaluatedBatch& on_batch, const OnEvalProgress& progress, uint64_t total,
       std::map<uint64_t, uint32_t> batches_by_lease)
      : coordinator_(coordinator),
        options_(options),
        on_batch_(on_batch),
        progress_(progress),
        total_(total),
        batches_by_lease_(std::move(batches_by_lease)),
        order_(batches_by_lease_) {}

  absl::StatusOr<uint64_t> Run(const Function& function);

 private:
  struct BatchValues {
    uint32_t records = 0;
    std::vector<Tensor> values;        // as EvaluatedBatch has them
    std::vector<MarkedRecord> marked;  // of the lease whose first batch it is
    uint64_t lease = 0;
    uint32_t index = 0;  // in the lease
  };

  absl::Status CheckStop();
  bool Stopping() const { return options_.stop != nullptr && options_.stop->load() > 0; }
  // All of the data, once.
  absl::Status ReadAll(const Function& function);
  // Waits for what is in flight, unless there was a stop, which says what becomes of it.
  void LetEnd();
  absl::Status Emit(BatchValues batch);
  // Those of the lease that stand before a record of the batch or, at the lease's end, behind it.
  std::vector<MarkedRecord> MarkedIn(BatchValues* batch);
  absl::StatusOr<BatchValues> ValuesOf(const FunctionResult& result, size_t step) const;
  absl::Status Take(const RemoteValue& done);
  // Takes results as they come, until fewer than `most_pending` functions are unfinished.
  absl::Status TakeResults(size_t most_pending);
  absl::Status Join();

  Coordinator& coordinator_;
  const ForEachBatchOptions& options_;
  const OnEvaluatedBatch& on_batch_;
  const OnEvalProgress& progress_;
  const uint64_t total_;
  const std::map<uint64_t, uint32_t> batches_by_lease_;
  BatchOrder<BatchValues> order_;
  // In order: of the lease that is being emitted.
  std::vector<MarkedRecord> lease_marked_;
  size_t next_marked_ = 0;
  uint32_t lease_records_ = 0;
  CompletionQueue pending_;
  uint64_t records_ = 0;
  uint64_t steps_done_ = 0;
  uint64_t records_emitted_ = 0;
  uint64_t batches_emitted_ = 0;
};

absl::Status Pass::CheckStop() {
  if (!Stopping()) return absl::OkStatus();
  if (options_.cancel) coordinator_.Cancel(options_.group);
  return absl::CancelledError("stopped");
}

std::vector<MarkedRecord> Pass::MarkedIn(BatchValues* batch) {
  std::vector<MarkedRecord> marked;
  if (!options_.in_order) return marked;
  if (batch->index == 0) {
    lease_marked_ = std::move(batch->marked);
    next_marked_ = 0;
    lease_records_ = 0;
  }
  const bool last = batch->index + 1 == batches_by_lease_.at(batch->lease);
  const uint32_t end = lease_records_ + batch->records;
  for (; next_marked_ < lease_marked_.size(); ++next_marked_) {
    MarkedRecord& record = lease_marked_[next_marked_];
    if (record.before >= end && !last) break;
    marked.push_back({std::min(record.before, end) - lease_records_, std::move(record.reason)});
  }
  lease_records_ = end;
  return marked;
}

absl::Status Pass::Emit(BatchValues batch) {
  ++batches_emitted_;
  records_emitted_ += batch.records;
  const std::vector<MarkedRecord> marked = MarkedIn(&batch);
  return on_batch_({batch.records, batch.values, marked});
}

absl::StatusOr<Pass::BatchValues> Pass::ValuesOf(const FunctionResult& result, size_t step) const {
  BatchValues batch{.records = result.samples(step), .marked = result.marked(step)};
  if (batch.records == 0) return batch;
  for (const std::string& name : options_.returns) {
    MU_ASSIGN_OR_RETURN(Tensor value, result.Get(step, name));
    const Shape& shape = value.shape();
    if (shape.rank() == 0 || shape[0] != static_cast<int64_t>(batch.records)) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", name, "' has shape ", shape.ToString(), " for a batch of ",
                       batch.records, " records; the model must give one value for each"));
    }
    batch.values.push_back(std::move(value));
  }
  for (const std::string& name : options_.returned_lists) {
    MU_ASSIGN_OR_RETURN(Tensor value, result.Get(step, name));
    batch.values.push_back(std::move(value));
  }
  return batch;
}

absl::Status Pass::Take(const RemoteValue& done) {
  const auto result = done.Fetch();
  if (!result.ok()) {
    const absl::Status first = coordinator_.Join(options_.group);
    return first.ok() ? result.status() : first;
  }
  size_t step = 0;
  for (const auto& range : result->batches()) {
    for (uint32_t b = 0; b < range.batches && step < result->steps(); ++b, ++step) {
      MU_ASSIGN_OR_RETURN(BatchValues batch, ValuesOf(*result, step));
      records_ += batch.records;
      batch.lease = range.lease->index();
      batch.index = range.first_batch + b;
      if (options_.in_order) {
        const uint64_t lease = batch.lease;
        const uint32_t index = batch.index;
        order_.Add(lease, index, std::move(batch));
      } else {
        MU_RETURN_IF_ERROR(Emit(std::move(batch)));
      }
    }
  }
  while (auto batch = order_.Next()) MU_RETURN_IF_ERROR(Emit(*std::move(batch)));
  steps_done_ += result->steps();
  if (progress_) progress_(steps_done_, total_);
  return absl::OkStatus();
}

absl::Status Pass::TakeResults(size_t most_pending) {
  while (pending_.size() >= most_pending ||
         (!pending_.empty() && records_ - records_emitted_ >= kMostWaitingRecords)) {
    MU_RETURN_IF_ERROR(CheckStop());
    if (options_.on_look) options_.on_look();
    if (const auto done = pending_.Next(kLook)) MU_RETURN_IF_ERROR(Take(done->value));
  }
  return absl::OkStatus();
}

absl::Status Pass::Join() {
  if (options_.on_look == nullptr || options_.group.made())
    return coordinator_.Join(options_.group);
  return JoinWithLooks(coordinator_, [this] {
    options_.on_look();
    return true;
  });
}

void Pass::LetEnd() {
  if (options_.group.made() && !Stopping()) coordinator_.Cancel(options_.group);
  while (!pending_.empty() && !Stopping()) {
    if (options_.on_look) options_.on_look();
    pending_.Next(kLook);
  }
}

absl::Status Pass::ReadAll(const Function& function) {
  uint64_t scheduled = 0;
  while (scheduled < total_) {
    MU_RETURN_IF_ERROR(CheckStop());
    const int workers = std::max<int>(1, static_cast<int>(coordinator_.Counts().workers_ready));
    const uint64_t share =
        std::max<uint64_t>(1, (total_ - scheduled) / (4 * static_cast<uint64_t>(workers)));
    const uint32_t steps = static_cast<uint32_t>(
        std::min<uint64_t>({options_.steps_per_function, share, total_ - scheduled}));
    pending_.Add(coordinator_.Schedule(function, {.steps = steps, .group = options_.group}));
    scheduled += steps;
    const size_t in_flight = static_cast<size_t>(coordinator_.runtime().options().in_flight);
    MU_RETURN_IF_ERROR(TakeResults(2 * in_flight * static_cast<size_t>(workers)));
  }
  MU_RETURN_IF_ERROR(TakeResults(1));
  return Join();
}

absl::StatusOr<uint64_t> Pass::Run(const Function& function) {
  if (absl::Status read = ReadAll(function); !read.ok()) {
    // A function's error has ended the others. The caller's has not, and what still reads the data
    // would be in the way of the next pass.
    LetEnd();
    return read;
  }
  if (batches_emitted_ != total_ || records_emitted_ != records_) {
    return absl::InternalError(absl::StrCat(
        "results are missing at the end of an evaluation: values of ", batches_emitted_, " of ",
        total_, " batches and ", records_emitted_, " of ", records_,
        " records were given out; this is a fault of this program, please report it"));
  }
  return records_;
}

absl::Status CheckValues(const std::string& name, const Tensor& values, uint32_t records) {
  if (values.dtype() == kFloat32 && values.elements() == records) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("'", name, "' has type ", std::string(DTypeName(values.dtype())), " and shape ",
                   values.shape().ToString(), " for a batch of ", records,
                   " records; the model must give one float32 value for each"));
}

}  // namespace

absl::StatusOr<uint64_t> ForEachBatch(Coordinator& coordinator, const Function& function,
                                      const Dataset& dataset, const ForEachBatchOptions& options,
                                      const OnEvaluatedBatch& on_batch,
                                      const OnEvalProgress& progress) {
  MU_RETURN_IF_ERROR(coordinator.CheckReads(function, dataset));
  if (dataset.proto().visitation() == pb::VISITATION_NONE) {
    return absl::InvalidArgumentError(
        "an evaluation uses each record once; visitation: none is for training");
  }
  MU_RETURN_IF_ERROR(coordinator.StartEpoch(dataset, 0, options.stop));
  MU_ASSIGN_OR_RETURN(const uint64_t total, coordinator.BatchesInEpoch(dataset, 0));
  MU_ASSIGN_OR_RETURN(auto batches_by_lease, coordinator.BatchesByLease(dataset));
  Pass pass(coordinator, options, on_batch, progress, total, std::move(batches_by_lease));
  return pass.Run(function);
}

absl::StatusOr<uint64_t> ForEachPrediction(Coordinator& coordinator, const Function& function,
                                           const Dataset& dataset, const EvalOptions& options,
                                           const OnBatch& on_batch,
                                           const OnEvalProgress& progress) {
  ForEachBatchOptions batches{.returns = {options.prediction},
                              .steps_per_function = options.steps_per_function,
                              .stop = options.stop,
                              .in_order = options.in_order};
  if (!options.label.empty()) batches.returns.push_back(options.label);
  return ForEachBatch(
      coordinator, function, dataset, batches,
      [&](const EvaluatedBatch& batch) -> absl::Status {
        const absl::Span<const Tensor> values = batch.values;
        if (values.empty()) return on_batch({}, {});
        for (size_t i = 0; i < values.size(); ++i)
          MU_RETURN_IF_ERROR(CheckValues(batches.returns[i], values[i], batch.records));
        return on_batch(values[0].flat<float>(),
                        values.size() > 1 ? values[1].flat<float>() : absl::Span<const float>());
      },
      progress);
}

}  // namespace mu
