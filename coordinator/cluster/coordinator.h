// The user's side of Muster: create variables, tables, datasets and functions; schedule and join.
// See docs/design.md.
//
//   MU_ASSIGN_OR_RETURN(auto c, mu::Local({.workers = 2, .ps = 2}));
//   MU_ASSIGN_OR_RETURN(mu::EmbeddingTable items, c->CreateEmbeddingTable({.name = "items", .rows =
//   1000, .dim = 16}));
//   ...
//   c->Schedule(step, {.steps = 10});
//   MU_RETURN_IF_ERROR(c->Join());
//
// Thread safe: any thread may call anything but the destructor.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/check.h"
#include "common/client/value_pieces.h"
#include "common/tensor/tensor.h"
#include "coordinator/cluster/function_group.h"
#include "coordinator/cluster/parameter_info.h"
#include "coordinator/cluster/runtime.h"
#include "coordinator/cluster/warm_start.h"
#include "coordinator/frontend/builder.h"
#include "coordinator/frontend/handles.h"
#include "coordinator/frontend/specs.h"
#include "coordinator/frontend/variable_factory.h"

namespace mu {

// A function that is installed on the workers. Copies are the same function.
class Function {
 public:
  Function() = default;  // none: an error where it is used
  bool valid() const { return proto_ != nullptr; }
  const std::string& name() const { return proto().name(); }
  Fingerprint fingerprint() const { return fingerprint_; }
  const pb::FunctionProto& proto() const {
    MU_CHECK(valid());
    return *proto_;
  }

 private:
  friend class Coordinator;
  std::shared_ptr<const pb::FunctionProto> proto_;
  Fingerprint fingerprint_;
  const void* owner_ = nullptr;  // the coordinator that defined it
};

// A scalar for a function's argument. A RemoteValue is refused: fetch it first.
class ArgValue {
 public:
  ArgValue(double value) : value_(value) {}         // NOLINT(google-explicit-constructor)
  ArgValue(float value) : value_(value) {}          // NOLINT
  ArgValue(int value) : value_(int64_t{value}) {}   // NOLINT
  ArgValue(int64_t value) : value_(value) {}        // NOLINT
  ArgValue(bool value) : value_(int64_t{value}) {}  // NOLINT
  ArgValue(const RemoteValue&) : remote_(true) {}   // NOLINT
  // INVALID_ARGUMENT if the value does not fit the type (a fraction for an integer; what is beyond
  // the type's values), or is a RemoteValue.
  absl::StatusOr<pb::TensorProto> ToProto(const pb::ArgProto& arg) const;

 private:
  std::variant<int64_t, double> value_ = int64_t{0};
  bool remote_ = false;
};

struct ScheduleOptions {
  uint32_t steps = 1;
  std::vector<std::pair<std::string, ArgValue>> args = {};
  // What Restore() gives back if the newest checkpoint was taken after this call and before the
  // next one that has a state.
  std::optional<std::string> user_state = std::nullopt;
  FunctionGroup group = {};  // beside training, see CreateGroup
};

// What a program continues from after its coordinator was started again.
struct RestoredJob {
  std::string directory;  // of the checkpoint
  pb::CheckpointProto manifest;
  std::string user_state;  // of the last Schedule or SetUserState before the checkpoint
  // Calls of before that run again or go on; Join waits for them. Each has the results of the steps
  // from the position's `next_step` on: those before it had arrived when the checkpoint was begun.
  std::vector<RemoteValue> unfinished;
};

struct SaveOptions {
  // A checkpoint that is there already is replaced, at one moment and once the new one is complete.
  // The directory becomes a link then, to a folder beside it.
  bool replace = false;
};

class Coordinator : public VariableFactory {
 public:
  struct Options {
    Runtime::Options runtime;
    std::string job_dir;                         // epochs are claimed in it; empty: epoch 1
    uint64_t seed = 1;                           // of initial values and of the order of data
    std::optional<Optimizer> default_optimizer;  // of trainable variables and tables that name none
    Partitioner default_partitioner = AutomaticPartitioner{};  // of variables that name none
    bool names_log = true;  // lines of the process's log name this job
    std::string http;       // host:port for metrics and health; empty: none
    TlsFiles tls;           // of it, off loopback
    // Of values that a program reads or assigns, how much one call to the servers carries.
    uint64_t piece_bytes = kValuePieceBytes;
  };
  // Listens; daemons register at address(). UNAVAILABLE if the address is in use.
  static absl::StatusOr<std::unique_ptr<Coordinator>> Create(Options options,
                                                             std::unique_ptr<Transport> transport);
  ~Coordinator() override;

  // Waits for all servers and `workers` workers.
  absl::Status WaitForCluster(int workers);

  // ALREADY_EXISTS for a taken name, INVALID_ARGUMENT for what makes no sense.
  absl::StatusOr<Variable> CreateVariable(const VariableSpec& spec) override;
  absl::StatusOr<EmbeddingTable> CreateEmbeddingTable(const EmbeddingTableSpec& spec) override;
  // Files are looked at when a function first needs them; what is wrong with them is that
  // function's error.
  absl::StatusOr<Dataset> CreateDataset(const DatasetSpec& spec);
  absl::StatusOr<Dataset> CreateDataset(pb::DatasetProto proto);
  // INVALID_ARGUMENT unless the function reads this data set, and both are of this coordinator.
  absl::Status CheckReads(const Function& function, const Dataset& dataset) const;
  // Traces `build` once. Errors carry the file:line of the op at fault. What it creates inside
  // (variables) is refused.
  absl::StatusOr<Function> DefineFunction(const std::string& name,
                                          const std::function<void(FunctionBuilder&)>& build);

  // Returns at once, unless the queue is full. An earlier function's error, if nobody has seen it
  // yet, is in the value.
  RemoteValue Schedule(const Function& function, ScheduleOptions options = {});
  // From now on a step of a function that changes parameters starts only when all steps that are
  // more than `steps` before it, in the order of the job, have been applied. Decided when a
  // function is sent to a worker, for all its steps: with fewer than a function has, one function
  // runs at a time. nullopt, the default: no bound. Call it before functions are scheduled, and
  // again after a restart. It has no effect in synchronous rounds.
  void BoundStaleness(std::optional<uint64_t> steps);
  // From now on functions that change parameters run in synchronous rounds: `replicas` steps read
  // the same values, and the mean of their gradients, weighted by records, is applied once
  // (docs/consistency.md). `backups` more steps are in flight; what comes too late for its round
  // runs again in a later one. A round takes fewer steps when nothing more is scheduled: when a
  // caller waits for what there is (Join, Done, Fetch). Call it before functions are scheduled and
  // before Restore(), and again after a restart. FAILED_PRECONDITION while functions are
  // unfinished; INVALID_ARGUMENT with recovery of single servers, which cannot be had afterwards
  // either: a Checkpointer that asks for it (RecoveryMode::kShard) while there are rounds gets
  // recovery of all servers, and only the log says so. {}: no rounds.
  absl::Status SynchronousRounds(const RoundRules& rules);
  // A checkpoint that this coordinator has taken or found in its folder is not deleted as long as
  // what this returns lives, which is to go before the coordinator does.
  absl::StatusOr<std::shared_ptr<const void>> HoldCheckpoint(const std::string& directory);
  // A group of functions that run beside training, whatever that waits for: workers take functions
  // of each in turn. Its functions only read: one that changes variables or tables is refused with
  // INVALID_ARGUMENT. It is joined, cancelled and fails apart: an error of one of its functions
  // cancels its others and is reported by its Join; training goes on, and the reverse. An
  // evaluation that was under way when the coordinator ended is not continued after a restart.
  // Functions wait while the servers load the checkpoint, again after one was lost. Errors: those
  // of reading a manifest; INVALID_ARGUMENT if the checkpoint does not fit what was created. What
  // else is wrong with its files is the group's error.
  absl::StatusOr<FunctionGroup> CreateGroup(const GroupOptions& options = {});
  // As Join below, for a group: waits for what was scheduled in it.
  absl::Status Join(const FunctionGroup& group);
  // Ends the group's functions with CANCELLED, those that run as well, and waits for nothing: a
  // worker may still be at a step of one, whose result nobody gets. It changes nothing, so a Join
  // that follows does not wait for it either. More may be scheduled in the group.
  void Cancel(const FunctionGroup& group);
  // Waits for everything that was scheduled, but in groups. The first error of a function, once.
  absl::Status Join();
  absl::StatusOr<bool> Done();
  absl::StatusOr<FunctionResult> Fetch(const RemoteValue& value) const { return value.Fetch(); }
  // Cancels what is queued and running, but in groups; when it returns, nothing runs and no update
  // comes.
  void Cancel();

  // The value of a variable as the servers have it now. Join first for one that no function is
  // changing: each row is whole, but rows may be of different moments.
  absl::StatusOr<Tensor> Read(const Variable& variable);
  // Once, however often it has to be sent. A value of another type or shape, or with NaN or
  // infinity, is refused with INVALID_ARGUMENT and changes nothing. After another error the
  // variable may have the value, in whole, in part or not. More than 16 MB are assigned in pieces
  // of rows, one after the other, as by several calls of AssignRows: functions that another thread
  // schedules, and checkpoints, may come between them, and an error says how many rows were
  // assigned before it.
  absl::Status Assign(const Variable& variable, const Tensor& value);
  // Rows `first` to `first + count` of axis 0. OUT_OF_RANGE if the variable has not all of them.
  absl::StatusOr<Tensor> ReadRows(const Variable& variable, int64_t first, int64_t count);
  // As Assign, for some rows of axis 0, each once; `values` has them in this order. OUT_OF_RANGE
  // for rows that there are not.
  absl::Status AssignRows(const Variable& variable, absl::Span<const int64_t> rows,
                          const Tensor& values);
  // Rows of a table, [ids.size(), dim]; creates none.
  absl::StatusOr<Tensor> ReadRows(const EmbeddingTable& table, absl::Span<const int64_t> ids);
  // As Assign, for rows of a table, [ids.size(), dim]; creates those that do not exist. Slots of
  // the optimizer keep what they hold (FTRL's go with the values). The coordinator keeps what was
  // assigned until two checkpoints contain it, as it keeps functions, and waits for them before the
  // next piece when the memory for it is full; FAILED_PRECONDITION when the pieces need more than
  // that memory and there can be no checkpoint, since the job has not begun().
  absl::Status AssignRows(const EmbeddingTable& table, absl::Span<const int64_t> ids,
                          const Tensor& values);
  // All rows of a table that exist, in pieces of at most `rows_in_piece` and 16 MB, each
  // once. Ends with the first error of `visit`. Of functions that run meanwhile each row has all or
  // nothing, but rows may be of different moments: Join first.
  struct TableRows {
    std::vector<int64_t> ids;
    Tensor values;  // [ids.size(), dim]
  };
  absl::Status ReadTable(const EmbeddingTable& table,
                         const std::function<absl::Status(const TableRows& piece)>& visit,
                         uint32_t rows_in_piece = 0);

  // Where all variables and tables are, how large they are and what was asked of them. Counts begin
  // anew when a server starts or restores its state.
  absl::StatusOr<std::vector<ParameterInfo>> Variables();

  // Batches that an epoch of the dataset has. Looks at the files if need be.
  absl::StatusOr<uint64_t> BatchesInEpoch(const Dataset& dataset, uint64_t epoch = 0);
  // Batches of each lease of the dataset's current epoch, by the lease's index.
  absl::StatusOr<std::map<uint64_t, uint32_t>> BatchesByLease(const Dataset& dataset);
  // Batches of each lease of an epoch, in the order in which leases are begun.
  absl::StatusOr<std::vector<uint32_t>> BatchesOfLeases(const Dataset& dataset, uint64_t epoch);
  // Begins the dataset again at the start of `epoch`. Join first: FAILED_PRECONDITION while
  // functions that read it are unfinished. Waits while training is being cancelled, and for
  // functions that a lost server makes run again; CANCELLED if `stop` (may be null) becomes more
  // than 0 meanwhile.
  absl::Status StartEpoch(const Dataset& dataset, uint64_t epoch,
                          const std::atomic<int>* stop = nullptr);

  absl::StatusOr<DataProgress> ProgressOf(const Dataset& dataset);
  // Of a dataset that every worker reads by itself: batches that scheduled functions have taken or
  // will take, since StartEpoch or the beginning of the job. Of a job that was continued from an
  // earlier program's checkpoint, all steps that it had trained count. INVALID_ARGUMENT for other
  // datasets.
  absl::StatusOr<uint64_t> StepsTaken(const Dataset& dataset);

  // Writes all variables and tables into `directory` (made) with a manifest, while functions run.
  // ALREADY_EXISTS if it holds one and is not to be replaced; UNAVAILABLE if a server is lost
  // or leaves meanwhile: it is none then.
  absl::StatusOr<pb::CheckpointProto> Save(const std::string& directory,
                                           pb::CheckpointProto manifest = {},
                                           SaveOptions options = {});
  // From now on a lost server does not end the job: servers go back to the last checkpoint
  // (Checkpoint, Restore or Save), or to the initial values, and the functions since then are
  // repeated (kAll), or only the lost server does and the report says what was rolled back
  // (kShard). Take checkpoints now and then, so that there is little to repeat and to remember
  // (every function since the last but one is): see training/checkpointer.h. Call it before
  // functions are scheduled.
  void EnableRecovery(const std::string& checkpoint_directory,
                      RecoveryMode mode = RecoveryMode::kAll);
  // Save into the next numbered folder of that directory. FAILED_PRECONDITION if there are
  // checkpoints already and begun() is false: Restore() would take the new one for the job's
  // newest state.
  absl::StatusOr<pb::CheckpointProto> Checkpoint(pb::CheckpointProto manifest = {},
                                                 std::string* directory = nullptr);
  // The same on another thread than the program's, which does not know how training goes
  // (training/checkpointer.h). CANCELLED once functions have failed or were cancelled, until one
  // that trains is scheduled: a job that is continued from it would lack what they were to do.
  absl::StatusOr<pb::CheckpointProto> CheckpointBeside(pb::CheckpointProto manifest = {},
                                                       std::string* directory = nullptr);
  // What Checkpoint would write is the job's: a function that changes variables or tables was
  // scheduled, Restore() has continued the job or found nothing, or the program has said
  // StartFresh(). A program that continues a job holds initial values before that, whatever it has
  // evaluated.
  bool begun() const;
  // This program does not continue what that directory holds.
  void StartFresh();
  // Deletes all but the newest `keep` checkpoints of that directory, and the one that servers would
  // go back to. Those of RUN/checkpoints are moved to RUN/followed if that folder is there:
  // `coordinator eval --follow`. ABORTED if a newer coordinator has taken over.
  absl::Status PruneCheckpoints(int keep);
  // Continues the job that the newest good checkpoint of that directory stopped in: values, the
  // position in the data, and the calls that were not finished, which run again. Create the same
  // variables, datasets and functions first, and schedule nothing before but in groups:
  // FAILED_PRECONDITION if there is a checkpoint and functions were scheduled, an evaluation's as
  // well, or if a data file, which is named, is not what it was then. Checkpoints of epochs before
  // `since` are another run's. NOT_FOUND if there is none; INVALID_ARGUMENT naming what differs if
  // it is of another job; DATA_LOSS if none of them is good.
  absl::StatusOr<RestoredJob> Restore(CoordinatorEpoch since = CoordinatorEpoch(0));
  // What Restore() will give back, from now on. See also ScheduleOptions.
  void SetUserState(std::string state);
  // Loads a checkpoint's values into what has been created; on any number of servers. Join first:
  // FAILED_PRECONDITION while functions of training are unfinished. Waits for functions of groups;
  // what is scheduled in a group meanwhile starts afterwards. A group that reads a checkpoint goes
  // on reading that one. INVALID_ARGUMENT naming what differs, DATA_LOSS naming a file that fails
  // its checksum. After an
  // error of a server all of them go back to the last checkpoint, or to their initial values; so
  // they do to the latter without EnableRecovery. A file that is missing here or has another size
  // changes nothing.
  absl::StatusOr<pb::CheckpointProto> Restore(const std::string& directory);

  // Begins with values of another model's checkpoint: those of the variables and tables that `spec`
  // names; all else keeps its initial values. Before functions are scheduled, else
  // FAILED_PRECONDITION. A lost server goes back to these values until there is a checkpoint
  // (EnableRecovery): take one, so that the other model's may be deleted. INVALID_ARGUMENT naming
  // what does not fit; other errors as those of Restore. Returns what was taken. With slots the
  // job's steps are counted on from those of the other one, `steps` of what is returned, which is
  // MinimizeOptions::first_step of a schedule that begins now. In synchronous rounds these are
  // rounds, so call SynchronousRounds before it.
  absl::StatusOr<pb::TakenValuesProto> WarmStart(const std::string& directory,
                                                 const WarmStartSpec& spec = {});

  // Tables that are created from now on, and that do not say how many partitions they have, get as
  // many as in this checkpoint, which was perhaps taken with more servers or fewer. EnableRecovery
  // does that with the newest of its directory that can be read. Returns false and changes nothing
  // if the manifest cannot be read.
  bool UsePartitionCountsOf(const std::string& directory);
  // The same for those that a warm start gives values.
  bool UsePartitionCountsOf(const std::string& directory, const WarmStartSpec& spec);
  // Variables and tables that are created from now on have the initializers, and the seed, of those
  // in this checkpoint that are called the same. For a program that loads its values and does not
  // train: rows that no step has touched are in no checkpoint. Returns as above.
  bool UseInitializersOf(const std::string& directory);

  // The job is over: its daemons end, with exit code 0, instead of waiting for its next
  // coordinator. Waits for them, up to the timeout of a silent one. Nothing else may be called
  // after it.
  void Dismiss();

  std::string address() const;
  std::string http() const;  // URL of metrics and health; empty: none
  uint64_t seed() const;
  uint64_t parameters();  // values of trainable variables and tables
  // For looks at any rate: waits for nobody, and may be a moment behind what else this thread has
  // heard.
  RuntimeCounts Counts() const;
  RuntimeStats Stats() const;
  Runtime& runtime();
  // Kept until after the last call is made, then released (local daemons, say).
  void OwnEnvironment(std::shared_ptr<void> environment);

 private:
  struct Impl;
  // INVALID_ARGUMENT for an empty handle, or one of another coordinator.
  absl::Status Check(const Dataset& dataset) const;
  absl::Status Check(const Function& function) const;
  absl::StatusOr<GroupId> IdOf(const FunctionGroup& group) const;
  explicit Coordinator(std::unique_ptr<Impl> impl);
  const std::unique_ptr<Impl> impl_;
};

}  // namespace mu
