#include "worker/step_runner.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/base/error_kind.h"
#include "common/base/mutex.h"
#include "worker/function_cache.h"
#include "worker/rate_scale.h"
#include "worker/step_plan.h"

namespace mu {

StepRunner::StepRunner(LeaseCache* leases, ParameterRoute* route, Telemetry* telemetry)
    : leases_(leases),
      access_(route, &watch_),
      idle_timer_(telemetry->timer("worker.idle")),
      data_timer_(telemetry->timer("worker.data_wait")),
      step_timer_(telemetry->timer("worker.step")),
      functions_(telemetry->counter("worker.functions")),
      steps_(telemetry->counter("worker.steps")),
      samples_(telemetry->counter("worker.samples")),
      bad_records_(telemetry->counter("worker.bad_records")) {}

void StepRunner::Execute(FunctionRun& run) {
  if (last_end_ns_ != 0) idle_timer_->Record(last_end_ns_, NowNs());
  ResultStream results(run.call());
  const absl::Status status = ExecuteSteps(run, &results);
  watch_.Leave();
  results.Flush();
  if (run.handed_back() && status.ok()) results.HandBack();
  run.call()->Finish(status);
  functions_->Add();
  last_end_ns_ = NowNs();
}

absl::Status StepRunner::ExecuteSteps(FunctionRun& run, ResultStream* results) {
  const pb::RunRequest& request = run.request();
  const StepPlan plan(request.batches());
  const std::string& name = run.inputs().function->graph.name();
  CurrentLease current;
  for (uint32_t step = request.first_step(); step < request.steps(); ++step) {
    if (run.stopped()) return run.why();
    pb::StepResult result;
    result.set_step(step);
    absl::Status status;
    bool runs = true;
    absl::StatusOr<Batch> batch = Batch();
    if (run.inputs().dataset != nullptr) {
      const auto place = plan.At(step);
      if (place.lease != nullptr) {
        watch_.Enter("reading data", name, request.step_offset() + step);
        batch = NextBatch(run, place.lease, place.batch, &current, &result);
        status = batch.status();
      }
      runs = status.ok() && batch->records > 0;
    }
    if (runs) {
      watch_.Enter("computing", name, request.step_offset() + step);
      status = Step(run, step, run.inputs().dataset != nullptr ? &*batch : nullptr, &result);
    }
    if (!status.ok()) {
      // What was aborted failed because of the stop.
      return run.aborted() ? run.why() : Explain(status, run, step);
    }
    steps_->Add();
    samples_->Add(result.samples());
    watch_.Leave();  // the coordinator may be slow to take it
    results->Add(std::move(result), NowNs());
  }
  return absl::OkStatus();
}

absl::StatusOr<Batch> StepRunner::NextBatch(const FunctionRun& run, const pb::LeaseProto* lease,
                                            uint32_t batch, CurrentLease* current,
                                            pb::StepResult* result) {
  ScopedTimer timing(data_timer_);
  if (current->lease != lease) {
    *current = {};
    MU_ASSIGN_OR_RETURN(current->data, leases_->Get(run.inputs().dataset, *lease));
    current->lease = lease;
  }
  // The bad records of a lease are counted where its first batch is, so once however often the
  // lease is read.
  if (batch == 0 && current->data->bad_records() > 0) {
    result->set_bad_records(current->data->bad_records());
    result->set_bad_record_message(current->data->first_bad());
    bad_records_->Add(current->data->bad_records());
  }
  Batch made = current->data->MakeBatch(batch);
  result->set_samples(made.records);
  return made;
}

absl::Status StepRunner::Step(FunctionRun& run, uint32_t step, const Batch* batch,
                              pb::StepResult* result) {
  const uint64_t start_ns = NowNs();
  const RunInputs& inputs = run.inputs();
  access_.Begin(
      &run, step, inputs.function->read_only,
      RateScale(run.request().step_offset() + step, inputs.function->graph.warmup_steps()));
  std::vector<Tensor> returns;
  const StepInputs step_inputs = {batch, inputs.args, index_.load(std::memory_order_relaxed)};
  const absl::Status status = inputs.function->executor.RunStep(step_inputs, access_, &returns);
  MU_RETURN_IF_ERROR(status);
  result->set_repeated(access_.repeated());
  const auto updates = access_.updates();
  result->mutable_updates()->Assign(updates.begin(), updates.end());
  const auto inherited = access_.inherited();
  result->mutable_inherited()->Assign(inherited.begin(), inherited.end());
  for (const Tensor& value : returns) *result->add_returns() = value.ToProto();
  if (slow_down_ > 1) {
    const double took_ns = static_cast<double>(NowNs() - start_ns);
    Notification never;
    never.WaitFor(absl::Nanoseconds(took_ns * (slow_down_ - 1)));
  }
  step_timer_->Record(start_ns, NowNs(), inputs.function->graph.name());
  return absl::OkStatus();
}

absl::Status StepRunner::Explain(const absl::Status& status, const FunctionRun& run,
                                 uint32_t step) const {
  const std::string& name = run.inputs().function->graph.name();
  pb::ErrorDetail detail = DetailOf(status).value_or(pb::ErrorDetail());
  if (detail.kind() == pb::ERROR_UNSPECIFIED)
    detail.set_kind(IsMachineCode(status.code()) ? pb::ERROR_MACHINE : pb::ERROR_USER);
  if (detail.kind() == pb::ERROR_MACHINE && detail.role() == pb::ROLE_UNSPECIFIED) {
    detail.set_role(pb::ROLE_WORKER);
    detail.set_index(index_.load(std::memory_order_relaxed));
  }
  detail.set_function(name);
  const uint64_t job_step = run.request().step_offset() + step;
  detail.set_step(static_cast<int64_t>(job_step));
  return WithDetail(Annotate(status, absl::StrCat("function '", name, "', step ", job_step)),
                    detail);
}

}  // namespace mu
