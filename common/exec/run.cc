#include "common/exec/run.h"

#include "absl/strings/str_cat.h"
#include "common/exec/random.h"
#include "common/graph/verifier.h"

namespace mu {
namespace {

// Batch, arguments and constants are only read; kernels never write over a value that is not in a
// buffer of ours.
View ReadOnly(const Tensor& tensor) {
  return {tensor.dtype(), tensor.shape(), const_cast<void*>(tensor.raw())};
}

// Whether the sizes that `expected` knows are those of `shape`.
bool Fits(const Shape& shape, const Shape& expected) {
  if (shape.rank() != expected.rank()) return false;
  for (int i = 0; i < shape.rank(); ++i) {
    if (expected[i] != kUnknownDim && shape[i] != expected[i]) return false;
  }
  return true;
}

}  // namespace

Run::Run(const Plan& plan)
    : plan_(plan),
      values_(plan.specs.size()),
      buffers_(plan.buffers),
      prepared_(plan.nodes.size()),
      column_positions_(plan.columns.size(), 0) {
  for (size_t v = 0; v < values_.size(); ++v) values_[v].dtype = plan.specs[v].dtype;
  for (const auto& [value, tensor] : plan.constants) {
    constants_.push_back(tensor);
    values_[value] = ReadOnly(tensor);
  }
  for (size_t i = 0; i < plan.nodes.size(); ++i) {
    const PlannedNode& node = plan.nodes[i];
    for (const int input : node.inputs) prepared_[i].inputs.push_back(&values_[input]);
    for (const PlannedPlace& place : node.places) {
      prepared_[i].places.push_back({place.buffer < 0 ? nullptr : &buffers_[place.buffer],
                                     place.spare < 0 ? nullptr : &buffers_[place.spare],
                                     place.in_place_input});
    }
  }
}

absl::Status Run::BindColumns(const Batch* batch) {
  for (size_t i = 0; i < plan_.columns.size(); ++i) {
    const PlannedColumn& column = plan_.columns[i];
    if (batch == nullptr) {
      return NodeError(plan_.function, column.node,
                       absl::InvalidArgumentError("the step has no batch to read"));
    }
    size_t& at = column_positions_[i];
    if (at >= batch->names.size() || batch->names[at] != column.name) {
      for (at = 0; at < batch->names.size() && batch->names[at] != column.name;) ++at;
    }
    if (at >= batch->columns.size()) {
      return NodeError(plan_.function, column.node,
                       absl::InvalidArgumentError(
                           absl::StrCat("the batch has no column \"", column.name, "\"")));
    }
    const Tensor& tensor = batch->columns[at];
    if (tensor.dtype() != column.spec.dtype || !Fits(tensor.shape(), column.spec.shape)) {
      const TensorSpec is{tensor.dtype(), tensor.shape()};
      return NodeError(plan_.function, column.node,
                       absl::InvalidArgumentError(absl::StrCat(
                           "column \"", column.name, "\" of the batch is ", is.ToString(),
                           ", the function reads it as ", column.spec.ToString())));
    }
    values_[column.value] = ReadOnly(tensor);
  }
  return absl::OkStatus();
}

absl::Status Run::BindArgs(absl::Span<const Tensor> args) {
  for (const PlannedArg& arg : plan_.args) {
    if (arg.index >= static_cast<int>(args.size())) {
      return NodeError(
          plan_.function, arg.node,
          absl::InvalidArgumentError(absl::StrCat(
              "argument \"", plan_.function.args(arg.index).name(), "\" is missing: the call has ",
              args.size(), " of ", plan_.function.args_size())));
    }
    const Tensor& tensor = args[arg.index];
    if (tensor.dtype() != arg.dtype || tensor.shape().rank() != 0) {
      const TensorSpec is{tensor.dtype(), tensor.shape()};
      return NodeError(
          plan_.function, arg.node,
          absl::InvalidArgumentError(absl::StrCat(
              "argument \"", plan_.function.args(arg.index).name(), "\" is ", is.ToString(),
              ", the function takes a scalar of type ", absl::string_view(DTypeName(arg.dtype)))));
    }
    values_[arg.value] = ReadOnly(tensor);
  }
  return absl::OkStatus();
}

absl::Status Run::CheckOutputs(const PlannedNode& node) const {
  for (size_t k = 0; k < node.places.size(); ++k) {
    const int value = node.first_output + static_cast<int>(k);
    if (!Fits(values_[value].shape, plan_.specs[value].shape)) {
      return absl::InvalidArgumentError(
          absl::StrCat("made a tensor of shape ", values_[value].shape.ToString(),
                       " where the graph says ", plan_.specs[value].shape.ToString()));
    }
  }
  return absl::OkStatus();
}

absl::Status Run::RunNodes(int begin, int end) {
  for (int i = begin; i < end; ++i) {
    const PlannedNode& node = plan_.nodes[i];
    Prepared& prepared = prepared_[i];
    KernelContext context(prepared.inputs,
                          absl::MakeSpan(&values_[node.first_output], node.places.size()),
                          absl::MakeSpan(prepared.places), &prepared.scratch, step_);
    absl::Status status = node.kernel->Run(context);
    if (status.ok()) status = CheckOutputs(node);
    if (!status.ok()) return NodeError(plan_.function, node.node, status);
  }
  return absl::OkStatus();
}

absl::Status Run::Begin(const StepInputs& inputs) {
  MU_RETURN_IF_ERROR(BindColumns(inputs.batch));
  MU_RETURN_IF_ERROR(BindArgs(inputs.args));
  worker_index_ = inputs.worker_index;
  step_ = StepOfSlice(inputs.step, inputs.slice);
  for (const int value : plan_.worker_indices) values_[value].data = &worker_index_;
  return RunNodes(0, plan_.id_nodes);
}

void* Run::MemoryOf(const PlannedVariable& variable) const {
  for (const VariableRead& read : variables) {
    if (read.variable == variable.id && read.first_row == variable.first_row &&
        read.rows == variable.rows)
      return read.out;
  }
  return nullptr;
}

absl::Status Run::PreparePull(const Run* other) {
  variables.clear();
  for (const PlannedVariable& variable : plan_.variables) {
    void* const pulled = other == nullptr ? nullptr : other->MemoryOf(variable);
    void* const memory =
        pulled != nullptr ? pulled : buffers_[variable.buffer].TryReserve(variable.bytes);
    if (memory == nullptr)
      return NodeError(plan_.function, variable.node, NoMemory(variable.shape));
    for (const int value : variable.values) {
      values_[value].shape = variable.shape;
      values_[value].data = memory;
    }
    if (pulled == nullptr)
      variables.push_back({variable.id, memory, variable.first_row, variable.rows});
  }
  rows.clear();
  for (const PlannedRows& planned : plan_.rows) {
    const View& ids = values_[planned.ids];
    View& view = values_[planned.value];
    view.shape = Shape({ids.elements(), planned.dim});
    view.data = ReserveFor(view.shape, kFloat32, buffers_[planned.buffer]);
    if (view.data == nullptr) return NodeError(plan_.function, planned.node, NoMemory(view.shape));
    rows.push_back(
        {planned.table, absl::MakeConstSpan(ids.as<int64_t>(), ids.elements()), view.as<float>()});
  }
  return absl::OkStatus();
}

absl::Status Run::Compute(Multiply multiply) {
  int begin = plan_.id_nodes;
  for (size_t stage = 0; stage < plan_.stage_ends.size(); ++stage) {
    MU_RETURN_IF_ERROR(RunNodes(begin, plan_.stage_ends[stage]));
    begin = plan_.stage_ends[stage];
    MU_RETURN_IF_ERROR(PrepareProducts(static_cast<int>(stage)));
    MU_RETURN_IF_ERROR(multiply(products_));
  }
  return RunNodes(begin, static_cast<int>(plan_.nodes.size()));
}

absl::Status Run::PrepareProducts(int stage) {
  products_.clear();
  for (const PlannedProduct& product : plan_.products) {
    if (product.stage != stage) continue;
    const View& x = values_[product.x];
    View& view = values_[product.value];
    view.shape = Shape({x.shape[0], product.columns});
    view.data = ReserveFor(view.shape, kFloat32, buffers_[product.buffer]);
    if (view.data == nullptr) return NodeError(plan_.function, product.node, NoMemory(view.shape));
    products_.push_back({product.id, product.back, x.shape[0], x.as<float>(), view.as<float>()});
  }
  return absl::OkStatus();
}

absl::Status Run::CheckUpdate(int node, const View& update, const Shape& wanted) const {
  if (update.shape == wanted) return absl::OkStatus();
  return NodeError(
      plan_.function, node,
      absl::InvalidArgumentError(absl::StrCat("the update has shape ", update.shape.ToString(),
                                              ", it must have ", wanted.ToString())));
}

absl::Status Run::AddWrite(const PlannedVariableUpdate& update) {
  const View& value = values_[update.value];
  VariableWrite write{update.id, update.kind, value.data};
  Shape expected = update.shape;
  if (write.has_rows()) {
    const View& rows = values_[update.other];
    write.rows = absl::MakeConstSpan(rows.as<int64_t>(), rows.elements());
    expected[0] = rows.elements();
  } else if (update.kind == VariableWrite::kProductGradient) {
    const View& x = values_[update.other];
    MU_RETURN_IF_ERROR(CheckUpdate(update.node, x, Shape({value.shape[0], update.shape[1]})));
    write.x = x.as<float>();
    write.batch = value.shape[0];
    expected = Shape({value.shape[0], update.shape[0]});
  }
  MU_RETURN_IF_ERROR(CheckUpdate(update.node, value, expected));
  variable_writes.push_back(write);
  return absl::OkStatus();
}

absl::Status Run::PreparePush() {
  variable_writes.clear();
  for (const PlannedVariableUpdate& update : plan_.variable_updates)
    MU_RETURN_IF_ERROR(AddWrite(update));
  row_writes.clear();
  for (const PlannedRowsUpdate& update : plan_.row_updates) {
    const View& ids = values_[update.ids];
    const View& gradients = values_[update.gradients];
    MU_RETURN_IF_ERROR(CheckUpdate(update.node, gradients, Shape({ids.elements(), update.dim})));
    row_writes.push_back({update.table, absl::MakeConstSpan(ids.as<int64_t>(), ids.elements()),
                          gradients.as<float>()});
  }
  return absl::OkStatus();
}

}  // namespace mu
