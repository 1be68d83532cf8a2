#include "worker/step_access.h"

#include <utility>

namespace mu {

void StepAccess::Begin(const FunctionRun* run, uint32_t step, bool read_only, float rate_scale,
                       const pb::StalenessProto* staleness) {
  run_ = run;
  step_ = step;
  read_only_ = read_only;
  pushed_ = false;
  rate_scale_ = rate_scale;
  staleness_ = staleness;
  std::shared_ptr<PsClient> client = shell_->client();
  if (client_ != client) {
    session_ = std::make_unique<PsSession>(client.get(), PsSessionOptions());
    client_ = std::move(client);
  }
  session_->ForgetClocks();
}

absl::Status StepAccess::Pull(absl::Span<const VariableRead> variables,
                              absl::Span<const RowsRead> rows) {
  if (variables.empty() && rows.empty()) return absl::OkStatus();
  return Call(/*push=*/false, [&] { return session_->Pull(variables, rows); });
}

absl::Status StepAccess::Multiply(absl::Span<const ProductRead> products) {
  if (products.empty()) return absl::OkStatus();
  return Call(/*push=*/false, [&] { return session_->Multiply(products); });
}

absl::Status StepAccess::Push(absl::Span<const VariableWrite> variables,
                              absl::Span<const RowsWrite> rows) {
  if (variables.empty() && rows.empty()) return absl::OkStatus();
  const absl::Status status = Call(/*push=*/true, [&] { return session_->Push(variables, rows); });
  pushed_ = status.ok();
  return status;
}

absl::Status StepAccess::Call(bool push, const std::function<absl::Status()>& call) {
  const StepWatch::Away away(watch_);
  absl::Status status;
  do {
    PsSessionOptions options;
    options.context = run_->request.context();
    options.function = run_->request.function();
    options.read_only = read_only_;
    options.view = run_->request.view();
    options.rate_scale = rate_scale_;
    // Optimizers count updates: a round is one.
    options.round = run_->request.round();
    options.most_contributions = run_->request.most_contributions();
    options.job_step = options.round > 0 ? options.round : run_->request.step_offset() + step_ + 1;
    options.staleness = staleness_;
    if (absl::Status begun = shell_->BeginCall(push, session_.get(), std::move(options), step_);
        !begun.ok())
      return begun;
    status = call();
  } while (shell_->RepeatCall(status));
  return status;
}

}  // namespace mu
