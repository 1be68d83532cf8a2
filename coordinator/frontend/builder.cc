#include "coordinator/frontend/builder.h"

#include "absl/strings/str_cat.h"
#include "common/graph/dataset_schema.h"
#include "common/graph/nearest_name.h"
#include "common/optimizer/schedule.h"

namespace mu {

BatchRef::BatchRef(std::shared_ptr<TraceGraph> graph, const pb::DatasetProto& dataset)
    : graph_(std::move(graph)), columns_(SchemaOf(dataset)) {}

Sym BatchRef::operator[](const ColumnName& column) const {
  if (graph_ == nullptr) return TraceGraph::NoGraph("batch_column", column.place());
  std::vector<std::string> names;
  for (const pb::ColumnSchema& schema : columns_) {
    if (schema.name() == column.name()) return graph_->ReadColumn(schema, column.place());
    names.push_back(schema.name());
  }
  return graph_->Fail(
      "batch_column",
      absl::InvalidArgumentError(absl::StrCat("the dataset has no column \"", column.name(), "\"",
                                              DidYouMean(column.name(), names))),
      column.place());
}

bool BatchRef::Has(const std::string& column) const {
  for (const pb::ColumnSchema& schema : columns_) {
    if (schema.name() == column) return true;
  }
  return false;
}

BatchRef FunctionBuilder::NextBatch(const Dataset& dataset, const char* file, int line) {
  const SourcePlace place{file, line};
  if (!dataset.valid()) {
    graph_->Fail("next_batch",
                 absl::InvalidArgumentError("the mu::Dataset is empty; create it first"), place);
    return BatchRef(graph_, {});
  }
  const uint64_t id = dataset.proto().id();
  if (id == 0) {
    graph_->Fail("next_batch",
                 absl::InvalidArgumentError("the dataset was not created by a coordinator"), place);
  } else if (dataset_.valid() && dataset_.proto().id() != id) {
    graph_->Fail("next_batch",
                 absl::InvalidArgumentError(
                     absl::StrCat("the function reads dataset \"", dataset_.name(),
                                  "\" already; a step reads one batch of one dataset")),
                 place);
  } else {
    dataset_ = dataset;
    graph_->proto().set_dataset(id);
    graph_->NoteBatchSize(dataset.proto().batch_size());
  }
  return BatchRef(graph_, dataset.proto());
}

Sym FunctionBuilder::Arg(const std::string& name, DType dtype, const char* file, int line) {
  const SourcePlace place{file, line};
  for (int i = 0; i < graph_->proto().args_size(); ++i) {
    if (graph_->proto().args(i).name() == name) {
      return graph_->Fail(
          "arg",
          absl::InvalidArgumentError(absl::StrCat("there is an argument \"", name, "\" already")),
          place);
    }
  }
  if (name.empty() || ElementSize(dtype) == 0) {
    return graph_->Fail("arg", absl::InvalidArgumentError("an argument needs a name and a type"),
                        place);
  }
  pb::ArgProto* arg = graph_->proto().add_args();
  arg->set_name(name);
  arg->set_dtype(dtype);
  return graph_->Add(
      "arg", {}, Attrs().Int("index", graph_->proto().args_size() - 1).Type("dtype", dtype), place);
}

Sym FunctionBuilder::WorkerIndex(const char* file, int line) {
  return graph_->Add("worker_index", {}, {}, {file, line});
}

void FunctionBuilder::Train(const char* file, int line) { graph_->SetTraining(true, {file, line}); }

absl::Status FunctionBuilder::SetMicroBatches(uint32_t micro_batches) {
  const uint32_t largest = dataset_.valid() ? dataset_.proto().batch_size() : 0;  // 0: not known
  if (micro_batches == 0)
    return absl::InvalidArgumentError("micro_batches must be at least 1; 1 computes a batch whole");
  if (micro_batches > 1 && !dataset_.valid()) {
    return absl::InvalidArgumentError(
        "micro_batches cuts the batch of a step, but the function has no NextBatch before this");
  }
  if (largest > 0 && micro_batches > largest) {
    return absl::InvalidArgumentError(absl::StrCat("micro_batches is ", micro_batches,
                                                   ", but a batch of dataset \"", dataset_.name(),
                                                   "\" has ", largest, " records"));
  }
  pb::FunctionProto& function = graph_->proto();
  const uint32_t before = std::max(1u, function.micro_batches());
  if (!graph_->minimize_requests().empty() && before != micro_batches) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the function has ", before, " micro_batches already; all its losses have the same"));
  }
  if (micro_batches > 1) function.set_micro_batches(micro_batches);
  return absl::OkStatus();
}

absl::Status FunctionBuilder::SetRates(const MinimizeOptions& options) {
  pb::FunctionProto& function = graph_->proto();
  function.set_warmup_steps(std::max(function.warmup_steps(), options.warmup_steps));
  function.set_first_step(std::max(function.first_step(), options.first_step));
  const pb::ScheduleProto& schedule = options.schedule.proto();
  if (const auto problems = ProblemsOf(schedule, /*rest_of_job=*/false); !problems.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the schedule's ", problems[0].key, " ", problems[0].message));
  }
  if (schedule.kind_case() != pb::ScheduleProto::KIND_NOT_SET) {
    if (function.has_schedule() &&
        function.schedule().SerializeAsString() != schedule.SerializeAsString())
      return absl::InvalidArgumentError("the function has another schedule already");
    *function.mutable_schedule() = schedule;
  }
  if (options.staleness.has_value()) {
    const pb::StalenessProto staleness = ToProto(*options.staleness);
    if (function.has_staleness() &&
        function.staleness().SerializeAsString() != staleness.SerializeAsString())
      return absl::InvalidArgumentError("the function has another staleness already");
    *function.mutable_staleness() = staleness;
  }
  MU_RETURN_IF_ERROR(SetMicroBatches(options.micro_batches));
  if (options.rate_arg.empty()) return absl::OkStatus();
  int index = 0;
  while (index < function.args_size() && function.args(index).name() != options.rate_arg) ++index;
  if (index == function.args_size()) {
    function.add_args()->set_name(options.rate_arg);
    function.mutable_args(index)->set_dtype(kFloat32);
  }
  const uint32_t rate_arg = static_cast<uint32_t>(index) + 1;
  if (function.args(index).dtype() != kFloat32) {
    return absl::InvalidArgumentError(absl::StrCat(
        "argument \"", options.rate_arg, "\" multiplies learning rates, so it must be float32"));
  }
  if (function.rate_arg() != 0 && function.rate_arg() != rate_arg)
    return absl::InvalidArgumentError("the function has another rate_arg already");
  function.set_rate_arg(rate_arg);
  return absl::OkStatus();
}

void FunctionBuilder::Minimize(const Operand& loss, const MinimizeOptions& options) {
  const Sym bound = loss.Bind();
  if (!bound.status().ok()) return;
  absl::Status valid;
  if (!bound.valid() || bound.graph() != graph_.get()) {
    valid = absl::InvalidArgumentError("the loss is no value of this function");
  } else if (bound.dtype() != kFloat32 || bound.shape().rank() != 0) {
    valid =
        absl::InvalidArgumentError(absl::StrCat("the loss must be a float32 scalar, got ",
                                                bound.spec().ToString(), "; take its mean or sum"));
  }
  if (valid.ok()) valid = graph_->CheckMayMinimize();
  if (valid.ok()) valid = CheckGradientOptions(options.gradients);
  std::optional<GradientOptions>& gradients = graph_->gradient_options();
  if (valid.ok() && gradients.has_value() && !(*gradients == options.gradients)) {
    valid = absl::InvalidArgumentError(
        "a step pushes the gradients of all its losses together; give each Minimize of the "
        "function the same gradient options");
  }
  if (!valid.ok()) {
    graph_->Fail("minimize", valid, loss.place());
    return;
  }
  gradients = options.gradients;
  if (absl::Status rates = SetRates(options); !rates.ok()) {
    graph_->Fail("minimize", rates, loss.place());
    return;
  }
  MinimizeRequest request;
  request.loss = bound.reference();
  request.options = options;
  request.location.set_file(loss.place().file);
  request.location.set_line(loss.place().line);
  graph_->minimize_requests().push_back(std::move(request));
}

void FunctionBuilder::Return(const std::string& name, const Operand& value) {
  const Sym bound = value.Bind();
  if (!bound.status().ok()) return;
  absl::Status valid;
  if (!bound.valid() || bound.graph() != graph_.get()) {
    valid = absl::InvalidArgumentError("what is returned is no value of this function");
  } else if (name.empty()) {
    valid = absl::InvalidArgumentError("a returned value needs a name");
  }
  for (const pb::ReturnProto& known : graph_->proto().returns()) {
    if (known.name() == name) {
      valid = absl::InvalidArgumentError(absl::StrCat("\"", name, "\" is returned already"));
    }
  }
  if (!valid.ok()) {
    graph_->Fail("return", valid, value.place());
    return;
  }
  pb::ReturnProto* added = graph_->proto().add_returns();
  added->set_name(name);
  *added->mutable_value() = bound.reference();
}

}  // namespace mu
