#include "worker/run_inputs.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/error_kind.h"

namespace mu {
namespace {

// A call that is wrong on every worker.
absl::Status CallersError(const std::string& message) {
  return WithKind(absl::InvalidArgumentError(message), pb::ERROR_USER, pb::ROLE_WORKER);
}

}  // namespace

absl::Status ParseInputs(const pb::FunctionProto& graph, bool read_only,
                         const pb::RunRequest& request, const std::vector<LeasedBatches>& batches,
                         std::vector<Tensor>* args) {
  if (request.view() != 0 && !read_only) {
    return CallersError(absl::StrCat(
        "function '", graph.name(),
        "' changes variables or tables, so it cannot run on the values of a checkpoint, which "
        "nobody changes; evaluate with a function that only reads"));
  }
  if (request.args_size() != graph.args_size()) {
    return CallersError(absl::StrCat("function '", graph.name(), "' takes ", graph.args_size(),
                                     " arguments, not ", request.args_size()));
  }
  for (int i = 0; i < request.args_size(); ++i) {
    absl::StatusOr<Tensor> arg = Tensor::FromProto(request.args(i));
    if (!arg.ok()) return WithKind(arg.status(), pb::ERROR_USER, pb::ROLE_WORKER);
    if (arg->dtype() != graph.args(i).dtype() || arg->shape().rank() != 0) {
      return CallersError(absl::StrCat("argument '", graph.args(i).name(), "' of function '",
                                       graph.name(), "' is a scalar of type ",
                                       pb::DType_Name(graph.args(i).dtype())));
    }
    args->push_back(*std::move(arg));
  }
  for (const LeasedBatches& range : batches) {
    if (range.lease->dataset() != graph.dataset()) {
      return CallersError(absl::StrCat("function '", graph.name(), "' reads dataset ",
                                       graph.dataset(), ", not dataset ", range.lease->dataset()));
    }
  }
  return absl::OkStatus();
}

}  // namespace mu
