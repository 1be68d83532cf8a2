#include "coordinator/frontend/trace_graph.h"

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "coordinator/frontend/sym.h"

namespace mu {
namespace {

thread_local TraceGraph* current_graph = nullptr;

}  // namespace

TraceGraph::TraceGraph(std::string name) { proto_.set_name(std::move(name)); }

TraceGraph* TraceGraph::Current() { return current_graph; }

TraceGraph::Scope::Scope(TraceGraph* graph) : before_(current_graph) { current_graph = graph; }
TraceGraph::Scope::~Scope() { current_graph = before_; }

TraceGraph::LocationScope::LocationScope(TraceGraph* graph, pb::SourceLocation location)
    : graph_(graph), before_(graph->location_), location_(std::move(location)) {
  graph_->location_ = &location_;
}
TraceGraph::LocationScope::~LocationScope() { graph_->location_ = before_; }

pb::SourceLocation TraceGraph::Locate(SourcePlace place) const {
  if (location_ != nullptr) return *location_;
  pb::SourceLocation location;
  location.set_file(place.file);
  location.set_line(place.line);
  return location;
}

Sym TraceGraph::Fail(const std::string& op, const absl::Status& status, SourcePlace place) {
  const pb::SourceLocation location = Locate(place);
  pb::ErrorDetail detail;
  detail.set_kind(pb::ERROR_USER);
  detail.set_function(proto_.name());
  detail.set_op(op);
  *detail.mutable_location() = location;
  Sym sym;
  sym.graph_ = shared_from_this();
  sym.status_ = WithDetail(
      Annotate(status, absl::StrCat(location.file(), ":", location.line(), ": ", op)), detail);
  if (first_error_.ok()) first_error_ = sym.status_;
  return sym;
}

Sym TraceGraph::NoGraph(const std::string& op, SourcePlace place) {
  Sym sym;
  sym.status_ = absl::FailedPreconditionError(absl::StrCat(
      place.file, ":", place.line, ": ", op,
      ": no function is being traced; ops work on values inside of DefineFunction only"));
  return sym;
}

absl::StatusOr<int> TraceGraph::AddNode(const std::string& op, absl::Span<const Sym> inputs,
                                        AttrMap attrs, SourcePlace place) {
  MU_ASSIGN_OR_RETURN(const OpDef* def, AllOps().Get(op));
  std::vector<TensorSpec> specs;
  for (const Sym& input : inputs) {
    if (input.graph() != this) {
      return absl::InvalidArgumentError(
          "an input belongs to another function; values pass between functions through variables");
    }
    specs.push_back(input.spec());
  }
  MU_ASSIGN_OR_RETURN(std::vector<TensorSpec> outputs, def->Infer(specs, attrs));
  pb::NodeProto* node = proto_.add_nodes();
  node->set_op(op);
  for (const Sym& input : inputs) *node->add_inputs() = input.reference();
  *node->mutable_attrs() = std::move(attrs);
  *node->mutable_location() = Locate(place);
  specs_.push_back(std::move(outputs));
  return proto_.nodes_size() - 1;
}

Sym TraceGraph::OutputOf(int node, int output) {
  Sym sym;
  sym.graph_ = shared_from_this();
  sym.reference_.set_node(node);
  sym.reference_.set_output(output);
  sym.spec_ = specs_[node][output];
  return sym;
}

Sym TraceGraph::Add(const std::string& op, absl::Span<const Sym> inputs, AttrMap attrs,
                    SourcePlace place) {
  for (const Sym& input : inputs) {
    if (!input.status().ok()) return input;
    if (input.graph() == nullptr) {
      return Fail(op, absl::InvalidArgumentError("an input is an empty mu::Sym"), place);
    }
  }
  const absl::StatusOr<int> node = AddNode(op, inputs, std::move(attrs), place);
  if (!node.ok()) return Fail(op, node.status(), place);
  return OutputOf(*node, 0);
}

absl::Status TraceGraph::AddEffect(const std::string& op, absl::Span<const Sym> inputs,
                                   AttrMap attrs, SourcePlace place) {
  for (const Sym& input : inputs) MU_RETURN_IF_ERROR(input.status());
  const absl::StatusOr<int> node = AddNode(op, inputs, std::move(attrs), place);
  return node.ok() ? absl::OkStatus() : Fail(op, node.status(), place).status();
}

Sym TraceGraph::ReadVariable(const Variable& variable, SourcePlace place) {
  if (!variable.valid()) {
    return Fail("variable_read",
                absl::InvalidArgumentError("the mu::Variable is empty; create it first"), place);
  }
  const uint32_t id = variable.proto().id();
  const auto known = variable_nodes_.find(id);
  if (known != variable_nodes_.end()) {
    const Variable& first = variables_.at(id);
    if (first.name() == variable.name() && first.shape() == variable.shape() &&
        first.proto().dtype() == variable.proto().dtype()) {
      return OutputOf(known->second, 0);
    }
    return Fail("variable_read",
                absl::InvalidArgumentError(absl::StrCat(
                    "variable '", variable.name(), "' has the id of variable '", first.name(),
                    "': one of them was created by another coordinator than the function's")),
                place);
  }
  const Sym read = Add("variable_read", {}, VariableAttrs(variable.proto()), place);
  if (read.valid()) {
    variable_nodes_[id] = read.reference().node();
    variables_.emplace(id, variable);
  }
  return read;
}

Sym TraceGraph::ReadColumn(const pb::ColumnSchema& column, SourcePlace place) {
  const auto known = column_nodes_.find(column.name());
  if (known != column_nodes_.end()) return OutputOf(known->second, 0);
  const Sym read = Add("batch_column", {},
                       Attrs()
                           .String("column", column.name())
                           .Type("dtype", column.dtype())
                           .Dims("shape", Shape(column.shape())),
                       place);
  if (read.valid()) column_nodes_[column.name()] = read.reference().node();
  return read;
}

bool TraceGraph::AskTraining(SourcePlace place) {
  if (!asked_training_.has_value()) asked_training_ = Locate(place);
  return training_;
}

void TraceGraph::SetTraining(bool training, SourcePlace place) {
  if (asked_training_.has_value() && training != training_) {
    Fail("train",
         absl::InvalidArgumentError(absl::StrCat(
             "what depends on whether the function trains was built before, at ",
             asked_training_->file(), ":", asked_training_->line(), "; call Train() first")),
         place);
    return;
  }
  training_ = training;
}

absl::Status TraceGraph::CheckMayMinimize() const {
  if (training_ || !asked_training_.has_value()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "the function has something that behaves differently in training, at ",
      asked_training_->file(), ":", asked_training_->line(),
      ", and it was built as for evaluation; call the FunctionBuilder's Train() first"));
}

void TraceGraph::NoteTable(const EmbeddingTable& table) {
  tables_.emplace(table.proto().id(), table);
}

Attrs& Attrs::Int(const std::string& name, int64_t value) {
  map_[name].set_i(value);
  return *this;
}

Attrs& Attrs::Float(const std::string& name, float value) {
  map_[name].set_f(value);
  return *this;
}

Attrs& Attrs::Bool(const std::string& name, bool value) {
  map_[name].set_b(value);
  return *this;
}

Attrs& Attrs::String(const std::string& name, std::string value) {
  map_[name].set_s(std::move(value));
  return *this;
}

Attrs& Attrs::Ints(const std::string& name, absl::Span<const int64_t> values) {
  map_[name].mutable_ints()->mutable_value()->Assign(values.begin(), values.end());
  return *this;
}

Attrs& Attrs::Type(const std::string& name, DType value) {
  map_[name].set_dtype(value);
  return *this;
}

Attrs& Attrs::Dims(const std::string& name, const Shape& value) {
  *map_[name].mutable_shape() = value.ToProto();
  return *this;
}

Attrs& Attrs::Value(const std::string& name, pb::TensorProto value) {
  *map_[name].mutable_tensor() = std::move(value);
  return *this;
}

AttrMap VariableAttrs(const pb::VariableProto& variable) {
  return Attrs()
      .String("variable", variable.name())
      .Int("id", variable.id())
      .Type("dtype", variable.dtype())
      .Dims("shape", Shape(variable.shape()));
}

AttrMap TableAttrs(const pb::TableProto& table, const std::string& combiner) {
  return Attrs()
      .String("table", table.name())
      .Int("id", table.id())
      .Int("rows", static_cast<int64_t>(table.rows()))
      .Int("dim", table.dim())
      .String("combiner", combiner);
}

}  // namespace mu
