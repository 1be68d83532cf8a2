#include "coordinator/cluster/function_spans.h"

#include "absl/strings/str_cat.h"

namespace mu {
namespace {

std::string End(const absl::Status& status) {
  return status.ok() ? "" : absl::StrCat(": ", absl::StatusCodeToString(status.code()));
}

}  // namespace

void FunctionSpans::Scheduled(FunctionId id, const std::string& name) {
  if (telemetry_->tracing()) functions_[id] = {name, NowNs()};
}

void FunctionSpans::Started(const StartRun& start, const std::string& name) {
  if (telemetry_->tracing()) runs_[start.run] = {name, NowNs()};
}

void FunctionSpans::Ended(const StartRun& start, const absl::Status& status) {
  const auto run = runs_.find(start.run);
  if (run == runs_.end()) return;
  telemetry_->AddAsyncSpan(absl::StrCat(run->second.name, " on worker ", start.worker.value()),
                           run->second.start_ns, NowNs(),
                           absl::StrCat("function ", start.function.value(), ", steps ",
                                        start.first_step, " to ", start.steps, End(status)));
  runs_.erase(run);
}

void FunctionSpans::Finished(FunctionId id, const absl::Status& status) {
  const auto function = functions_.find(id);
  if (function == functions_.end()) return;
  telemetry_->AddAsyncSpan(function->second.name, function->second.start_ns, NowNs(),
                           absl::StrCat("function ", id.value(), End(status)));
  functions_.erase(function);
}

}  // namespace mu
