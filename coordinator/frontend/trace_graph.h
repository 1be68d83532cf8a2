// A graph while it is traced. Users see Sym, FunctionBuilder and the ops; autodiff and passes see
// this.
//
// One thread traces one graph at a time; Current() is that thread's. Not synchronised.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "common/graph/op_table.h"
#include "common/graph/verifier.h"
#include "coordinator/frontend/gradient_options.h"
#include "coordinator/frontend/handles.h"
#include "coordinator/frontend/schedules.h"
#include "coordinator/frontend/staleness.h"
#include "proto/graph.pb.h"

namespace mu {

class Sym;

// A line of the user's program.
struct SourcePlace {
  const char* file = "";
  int line = 0;
};

struct MinimizeOptions {
  // Variables and tables to train; empty: all that are trainable. Names, or beginnings of names
  // that end with *.
  std::vector<std::string> only = {};
  // Learning rates grow linearly to their full value over so many steps of the job; 0: at once.
  // Adaptive optimizers take their largest steps first, while their accumulators are empty, and
  // several workers overshoot together. A function's steps push all updates together, so all its
  // losses have one warm-up (the longest), schedule and rate_arg.
  uint32_t warmup_steps = 0;
  // What follows the warm-up.
  RateSchedule schedule = ConstantRate{};
  // The step of the job at which they begin. A program that begins with the values of another run
  // (Coordinator::Restore) counts on from that run's steps.
  uint64_t first_step = 0;
  // The name of an argument of the function, float32, that multiplies learning rates as well; made
  // if it is not there. So each call brings along what it is to be: for schedules of the program's
  // own.
  std::string rate_arg = {};
  // What is not trained, named alike: {"bottom_mlp*"}.
  std::vector<std::string> frozen = {};
  // Penalties, clipping and weight decay. All losses of a function have the same.
  GradientOptions gradients = {};
  // What is done about gradients of values that other workers have changed meanwhile. All losses of
  // a function have the same. nullopt: nothing, and nobody counts how late they are.
  std::optional<Staleness> staleness = std::nullopt;
  // A step computes its batch in so many slices of records, one after the other, and pushes their
  // gradients together: a worker then holds the activations and the rows of one slice only. The
  // loss is to be a mean over the records. From 1 to the batch size; all losses of a function have
  // the same.
  uint32_t micro_batches = 1;
};

// What is known of the products with one variable that servers may compute.
struct ProductChoice {
  bool must = false;             // the user says so; else any place will do
  bool pays_in_training = true;  // else it only pays where no gradient goes through them
};

// A wish to minimise a node's output; autodiff fulfils it when tracing ends.
struct MinimizeRequest {
  pb::NodeInput loss;
  MinimizeOptions options;
  pb::SourceLocation location;
};

class TraceGraph : public std::enable_shared_from_this<TraceGraph> {
 public:
  explicit TraceGraph(std::string name);

  // The graph that this thread traces; null if none.
  static TraceGraph* Current();
  // Makes a graph current while it lives.
  class Scope {
   public:
    explicit Scope(TraceGraph* graph);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    TraceGraph* const before_;
  };
  // Nodes made while it lives get this location, whatever their call says: gradients take their
  // forward op's.
  class LocationScope {
   public:
    LocationScope(TraceGraph* graph, pb::SourceLocation location);
    ~LocationScope();
    LocationScope(const LocationScope&) = delete;
    LocationScope& operator=(const LocationScope&) = delete;

   private:
    TraceGraph* const graph_;
    const pb::SourceLocation* const before_;
    const pb::SourceLocation location_;
  };

  // Whether a LocationScope is in force.
  bool has_location() const { return location_ != nullptr; }

  // Adds a node, its types and shapes inferred. The result has an error if an input has one, or the
  // op refuses them; the graph's first error is remembered.
  Sym Add(const std::string& op, absl::Span<const Sym> inputs, AttrMap attrs, SourcePlace place);
  // The same for ops that have no outputs.
  absl::Status AddEffect(const std::string& op, absl::Span<const Sym> inputs, AttrMap attrs,
                         SourcePlace place);
  // A result with this error; remembered if it is the first.
  Sym Fail(const std::string& op, const absl::Status& status, SourcePlace place);
  // A result with the error that no function is being traced. FAILED_PRECONDITION.
  static Sym NoGraph(const std::string& op, SourcePlace place);

  // One read per variable and graph.
  Sym ReadVariable(const Variable& variable, SourcePlace place);
  Sym ReadColumn(const pb::ColumnSchema& column, SourcePlace place);
  void NoteTable(const EmbeddingTable& table);
  // Of a variable that the graph uses without reading all of it.
  void NoteVariable(const Variable& variable) {
    variables_.emplace(variable.proto().id(), variable);
  }
  // Servers are to compute a product with it, so far.
  void NoteProduct(const Variable& variable, const ProductChoice& choice) {
    ProductChoice& all = products_[variable.proto().id()];
    all.must = all.must || choice.must;
    all.pays_in_training = all.pays_in_training && choice.pays_in_training;
  }
  // By variable (id).
  const std::map<uint32_t, ProductChoice>& products() const { return products_; }
  // Records of a step's batch; 0: not known.
  void NoteBatchSize(int64_t records) { batch_size_ = records; }
  int64_t batch_size() const { return batch_size_; }

  // Whether the function trains. Who asks builds something else then (dropout, batch norm), so the
  // answer may not change afterwards.
  bool AskTraining(SourcePlace place);
  // Sets the answer, which is false at first. An error if somebody asked before and got the other.
  void SetTraining(bool training, SourcePlace place);
  // INVALID_ARGUMENT if the function is minimised although something was built as for evaluation.
  absl::Status CheckMayMinimize() const;

  // Random numbers of this graph's ops: functions of this seed, the op's number and the step.
  void set_seed(uint64_t seed) { seed_ = seed; }
  uint64_t seed() const { return seed_; }
  int64_t NextRandomOp() { return random_ops_++; }

  pb::FunctionProto& proto() { return proto_; }
  const FunctionSpecs& specs() const { return specs_; }
  // What the graph uses, by id.
  const std::map<uint32_t, Variable>& variables() const { return variables_; }
  const std::map<uint32_t, EmbeddingTable>& tables() const { return tables_; }
  std::vector<MinimizeRequest>& minimize_requests() { return minimize_requests_; }
  // Of all its losses; set by the first.
  std::optional<GradientOptions>& gradient_options() { return gradient_options_; }
  const absl::Status& status() const { return first_error_; }
  // A handle to an output of a node that is there.
  Sym OutputOf(int node, int output);

 private:
  pb::SourceLocation Locate(SourcePlace place) const;
  // The node's index, or the error. Inputs are free of errors.
  absl::StatusOr<int> AddNode(const std::string& op, absl::Span<const Sym> inputs, AttrMap attrs,
                              SourcePlace place);

  pb::FunctionProto proto_;
  FunctionSpecs specs_;
  std::map<uint32_t, Variable> variables_;
  std::map<uint32_t, EmbeddingTable> tables_;
  std::map<uint32_t, int> variable_nodes_;
  std::map<std::string, int> column_nodes_;
  std::vector<MinimizeRequest> minimize_requests_;
  std::optional<GradientOptions> gradient_options_;
  bool training_ = false;
  std::optional<pb::SourceLocation> asked_training_;  // where first
  uint64_t seed_ = 1;
  int64_t random_ops_ = 0;
  int64_t batch_size_ = 0;
  std::map<uint32_t, ProductChoice> products_;
  const pb::SourceLocation* location_ = nullptr;
  absl::Status first_error_;
};

// Builds attributes: Attrs().Int("axis", 1).Bool("keep_dims", true).
class Attrs {
 public:
  Attrs& Int(const std::string& name, int64_t value);
  Attrs& Float(const std::string& name, float value);
  Attrs& Bool(const std::string& name, bool value);
  Attrs& String(const std::string& name, std::string value);
  Attrs& Ints(const std::string& name, absl::Span<const int64_t> values);
  Attrs& Type(const std::string& name, DType value);
  Attrs& Dims(const std::string& name, const Shape& value);
  Attrs& Value(const std::string& name, pb::TensorProto value);
  operator AttrMap() const { return map_; }  // NOLINT(google-explicit-constructor)

 private:
  AttrMap map_;
};

// The attributes that name a variable or a table in the graph.
AttrMap VariableAttrs(const pb::VariableProto& variable);
AttrMap TableAttrs(const pb::TableProto& table, const std::string& combiner);

}  // namespace mu
