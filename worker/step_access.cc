#include "worker/step_access.h"

#include "worker/request_gate.h"

namespace mu {

void StepAccess::Begin(FunctionRun* run, uint32_t step, bool read_only, float rate_scale) {
  run_ = run;
  step_ = step;
  read_only_ = read_only;
  pushed_ = false;
  rate_scale_ = rate_scale;
  const auto route = route_->snapshot();
  // Of the run, not of this moment: a run that its coordinator gave up while it could not reach
  // this worker must not push into the state that was restored since. 0: the caller does not say.
  const uint64_t started_in = run->request().context().generation();
  generation_ = started_in != 0 ? started_in : route.generation;
  if (client_ != route.client) {
    session_ = std::make_unique<PsSession>(route.client.get(), PsSessionOptions());
    client_ = route.client;
  }
}

absl::Status StepAccess::Pull(absl::Span<const VariableRead> variables,
                              absl::Span<const RowsRead> rows) {
  if (variables.empty() && rows.empty()) return absl::OkStatus();
  return Try(/*stop_with_run=*/true, [&] { return session_->Pull(variables, rows); });
}

absl::Status StepAccess::Push(absl::Span<const VariableWrite> variables,
                              absl::Span<const RowsWrite> rows) {
  if (variables.empty() && rows.empty()) return absl::OkStatus();
  const absl::Status status =
      Try(/*stop_with_run=*/false, [&] { return session_->Push(variables, rows); });
  pushed_ = status.ok();
  return status;
}

absl::Status StepAccess::Try(bool stop_with_run, const std::function<absl::Status()>& attempt) {
  const StepWatch::Away away(watch_);
  while (true) {
    if (run_->aborted()) {
      // One that is handed back has no error, but neither has this step been done.
      const absl::Status why = run_->why();
      return why.ok() ? absl::CancelledError("the run is handed back") : why;
    }
    const auto route = route_->snapshot();
    if (route.client != client_) return absl::CancelledError("a newer coordinator took over");
    if (!route.configured) {
      return WorkerRefusal(pb::ERROR_NOT_INSTALLED,
                           "this worker does not know the parameter servers: call Configure first");
    }
    PsSessionOptions options;
    options.context = run_->request().context();
    options.context.set_generation(generation_);
    options.context.set_low_water(route.low_water);
    options.function = run_->id();
    options.read_only = read_only_;
    options.rate_scale = rate_scale_;
    session_->BeginFunction(std::move(options));
    session_->BeginStep(step_);

    const auto cancel = [session = session_.get()] { session->Cancel(); };
    route_->SetInterrupt(cancel);
    if (stop_with_run) run_->SetAbort(cancel);
    absl::Status status;
    // Servers that moved before the interrupt was set are noticed here.
    const bool current = route_->snapshot().servers_version == route.servers_version;
    if (current) status = attempt();
    if (stop_with_run) run_->SetAbort(nullptr);
    route_->SetInterrupt(nullptr);
    const bool interrupted =
        absl::IsCancelled(status) && route_->snapshot().servers_version != route.servers_version;
    if (current && !interrupted) return status;
  }
}

}  // namespace mu
