#include "worker/step_runner.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/base/error_kind.h"
#include "common/base/mutex.h"
#include "common/client/too_late.h"
#include "common/optimizer/schedule.h"
#include "worker/worker_function.h"

namespace mu {

StepRunner::StepRunner(CoreShell* shell, LeaseCache* leases, Telemetry* telemetry)
    : shell_(shell),
      leases_(leases),
      access_(shell, &watch_),
      idle_timer_(telemetry->timer("worker.idle", "Times without a function to run")),
      data_timer_(telemetry->timer("worker.data_wait", "Waits of steps for records")),
      step_timer_(telemetry->timer("worker.step", "Steps, with their pulls and pushes")),
      functions_(telemetry->counter("worker.functions", "Runs of functions executed")),
      steps_(telemetry->counter("worker.steps", "Steps executed, repeated ones too")),
      samples_(telemetry->counter("worker.samples", "Records of the steps executed")),
      bad_records_(
          telemetry->counter("worker.bad_records", "Records left out by on_bad_record: skip")),
      refused_(
          telemetry->counter("worker.refused_steps",
                             "Attempts at steps whose gradients a server refused as too late")) {}

void StepRunner::Loop() {
  while (const auto next = shell_->NextRun()) Execute(*next->run, next->step);
}

void StepRunner::Execute(FunctionRun& run, uint32_t first_step) {
  uint64_t gap_us = 0;
  if (last_end_ns_ != 0) {
    const uint64_t now_ns = NowNs();
    gap_us = std::min<uint64_t>((now_ns - last_step_end_ns_) / 1000,
                                std::numeric_limits<uint32_t>::max());
    idle_timer_->Record(last_end_ns_, now_ns);
    if (on_idle_) on_idle_(last_end_ns_, now_ns);
  }
  Reading reading{StepPlan(run.leases.batches)};
  std::optional<uint32_t> step = first_step;
  uint32_t refused = 0;  // attempts at this step
  while (step.has_value()) {
    pb::StepResult result;
    result.set_step(*step);
    result.set_refused(refused);
    if (*step == first_step) result.set_gap_us(static_cast<uint32_t>(gap_us));
    const absl::Status status = Step(run, *step, &reading, &result);
    last_step_end_ns_ = NowNs();
    watch_.Leave();  // the coordinator may be slow to take it
    if (status.ok()) {
      steps_->Add();
      samples_->Add(result.samples());
    }
    refused = IsTooLate(status) ? refused + 1 : 0;
    if (refused > 0) refused_->Add();
    step = shell_->StepEnded(&run, status, std::move(result));
  }
  functions_->Add();
  last_end_ns_ = NowNs();
}

absl::Status StepRunner::Step(const FunctionRun& run, uint32_t step, Reading* reading,
                              pb::StepResult* result) {
  const std::string& name = run.inputs.function->graph.name();
  const uint64_t job_step = run.request.step_offset() + step;
  absl::StatusOr<Batch> batch = Batch();
  const bool reads = run.inputs.dataset != nullptr;
  if (reads) {
    if (const auto place = reading->plan.At(step); place.lease != nullptr) {
      watch_.Enter("reading data", name, job_step);
      batch = NextBatch(run, place, reading, result);
      if (!batch.ok()) return Explain(batch.status(), run, step);
      // What is said of bad records.
      if (absl::Status fits = CheckSize(*result, {}); !fits.ok()) return Explain(fits, run, step);
    }
    if (batch->records == 0) return absl::OkStatus();
  }
  watch_.Enter("computing", name, job_step);
  const absl::Status status = Compute(run, step, reads ? &*batch : nullptr, result);
  return status.ok() ? status : Explain(status, run, step);
}

absl::StatusOr<Batch> StepRunner::NextBatch(const FunctionRun& run, const StepPlan::Place& place,
                                            Reading* reading, pb::StepResult* result) {
  ScopedTimer timing(data_timer_);
  if (reading->lease != place.lease) {
    reading->lease = nullptr;
    reading->data = nullptr;
    MU_ASSIGN_OR_RETURN(reading->data, leases_->Get(run.inputs.dataset, *place.lease));
    reading->lease = place.lease;
  }
  const LeaseData& data = *reading->data;
  // The bad records of a lease are counted where its first batch is, so once however often the
  // lease is read.
  if (place.batch == 0 && data.bad_records() > 0) {
    result->set_bad_records(data.bad_records());
    result->set_bad_record_message(data.first_bad());
    for (const LeaseData::Marked& marked : data.marked()) {
      pb::MarkedRecordProto* const record = result->add_marked_records();
      record->set_before(marked.before);
      record->set_reason(marked.reason);
    }
    bad_records_->Add(data.bad_records());
  }
  Batch made = data.MakeBatch(place.batch);
  result->set_samples(made.records);
  return made;
}

absl::StatusOr<float> StepRunner::RateScaleOf(const FunctionRun& run, uint32_t step) {
  const pb::FunctionProto& graph = run.inputs.function->graph;
  // A round is one update, as a step is elsewhere.
  const uint64_t update =
      run.request.round() > 0 ? run.request.round() - 1 : run.request.step_offset() + step;
  const float scale = RateScale(graph.schedule(), graph.warmup_steps(),
                                update - std::min(update, graph.first_step()));
  if (graph.rate_arg() == 0) return scale;
  // Verified: it is there, and a float32.
  const size_t arg = graph.rate_arg() - 1;
  const float given = *run.inputs.args[arg].data<float>();
  if (given >= 0 && std::isfinite(given)) return scale * given;
  return absl::InvalidArgumentError(
      absl::StrCat("argument '", graph.args(static_cast<int>(arg)).name(),
                   "' multiplies the learning rates, so it must be a number from 0, not ", given));
}

absl::Status StepRunner::Compute(const FunctionRun& run, uint32_t step, const Batch* batch,
                                 pb::StepResult* result) {
  const uint64_t start_ns = NowNs();
  const RunInputs& inputs = run.inputs;
  const uint64_t draw_step =
      (run.request.draw_offset() > 0 ? run.request.draw_offset() : run.request.step_offset()) +
      step;
  MU_ASSIGN_OR_RETURN(const float rate_scale, RateScaleOf(run, step));
  const pb::FunctionProto& graph = inputs.function->graph;
  access_.Begin(&run, step, inputs.function->read_only, rate_scale,
                graph.has_staleness() ? &graph.staleness() : nullptr);
  std::vector<Tensor> returns;
  const StepInputs step_inputs = {batch, inputs.args, index_.load(std::memory_order_relaxed),
                                  draw_step};
  const absl::Status status = inputs.function->executor.RunStep(step_inputs, access_, &returns);
  MU_RETURN_IF_ERROR(status);
  result->set_repeated(access_.repeated());
  const auto updates = access_.updates();
  result->mutable_updates()->Assign(updates.begin(), updates.end());
  const auto inherited = access_.inherited();
  result->mutable_inherited()->Assign(inherited.begin(), inherited.end());
  if (const auto late = access_.late(); late.has_value()) result->set_late(*late);
  MU_RETURN_IF_ERROR(CheckSize(*result, returns));
  for (const Tensor& value : returns) *result->add_returns() = value.ToProto();
  if (slow_down_ > 1) {
    // One that waited for servers is no slower for that.
    constexpr double kMostNs = 2e8;
    const double took_ns = std::min(kMostNs, static_cast<double>(NowNs() - start_ns));
    hurry_.WaitFor(absl::Nanoseconds(took_ns * (slow_down_ - 1)));
  }
  if (step_wait_ > absl::ZeroDuration()) hurry_.WaitFor(step_wait_);
  step_timer_->Record(start_ns, NowNs(), inputs.function->graph.name());
  return absl::OkStatus();
}

absl::Status StepRunner::CheckSize(const pb::StepResult& result,
                                   const std::vector<Tensor>& returns) const {
  constexpr uint64_t kValueBytes = 32;  // beside the data and the sizes of the axes, which are more
  constexpr uint64_t kAxisBytes = 10;
  uint64_t bytes = result.ByteSizeLong();
  for (const Tensor& value : returns) {
    bytes += kValueBytes + kAxisBytes * static_cast<uint64_t>(value.shape().rank()) +
             static_cast<uint64_t>(value.bytes());
  }
  if (bytes <= most_result_bytes_) return absl::OkStatus();
  if (returns.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "what is to be said of the bad records has ", bytes, " bytes, but a message has ",
        most_result_bytes_, " at most; repair the records, or make shuffle_records smaller"));
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "the values that it returns have ", bytes, " bytes, but a message has ", most_result_bytes_,
      " at most; return smaller ones (a mean, a part), make the batch smaller, or read "
      "variables with Coordinator::Read"));
}

absl::Status StepRunner::Explain(const absl::Status& status, const FunctionRun& run,
                                 uint32_t step) const {
  const std::string& name = run.inputs.function->graph.name();
  pb::ErrorDetail detail = DetailOf(status).value_or(pb::ErrorDetail());
  if (detail.kind() == pb::ERROR_UNSPECIFIED)
    detail.set_kind(IsMachineCode(status.code()) ? pb::ERROR_MACHINE : pb::ERROR_USER);
  if (detail.kind() == pb::ERROR_MACHINE && detail.role() == pb::ROLE_UNSPECIFIED) {
    detail.set_role(pb::ROLE_WORKER);
    detail.set_index(index_.load(std::memory_order_relaxed));
  }
  detail.set_function(name);
  const uint64_t job_step = run.request.step_offset() + step;
  detail.set_step(static_cast<int64_t>(job_step));
  return WithDetail(Annotate(status, absl::StrCat("function '", name, "', step ", job_step)),
                    detail);
}

}  // namespace mu
