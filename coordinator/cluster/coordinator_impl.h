// What a coordinator consists of.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "absl/types/span.h"
#include "common/base/mutex.h"
#include "common/http/monitor.h"
#include "coordinator/cluster/coordinator.h"
#include "coordinator/cluster/job_checkpoints.h"
#include "coordinator/cluster/runtime.h"
#include "coordinator/cluster/server_calls.h"

namespace mu {

struct Coordinator::Impl {
  Impl(Options options, std::unique_ptr<Transport> transport);
  ~Impl();
  absl::Status StartMonitor();

  // INVALID_ARGUMENT for a handle that is empty or that another coordinator gave: what this one has
  // under its name or id may be larger.
  absl::Status CheckOwn(const Variable& variable) const;
  absl::Status CheckOwn(const EmbeddingTable& table) const;
  // INVALID_ARGUMENT with op and file:line unless this coordinator has created every variable and
  // table that the function names, as the function says. The function was verified.
  absl::Status CheckOwn(const pb::FunctionProto& function) const;
  // Makes a call to the servers, again if they had to be recovered meanwhile.
  absl::Status WithServers(const std::function<absl::Status()>& call);
  // The same for one that reads values. If all of training has finished, they are those that all of
  // it has made.
  absl::Status Reading(const std::function<absl::Status()>& call);
  // See Coordinator::begun.
  bool begun() const { return runtime->begun() || checkpoints.starts_fresh(); }
  // Seeds the initializer of what is created with this name and type, or takes the one of a
  // checkpoint (UseInitializersOf).
  void SetInitializer(const std::string& name, DType dtype,
                      pb::InitializerProto* initializer) const;
  struct AssignTarget {
    std::string name;
    bool table = false;
    std::optional<absl::Span<const int64_t>> rows;  // none: all of a variable
  };
  // INVALID_ARGUMENT, OUT_OF_RANGE for values that do not fit, of which none is assigned then.
  absl::Status Assign(const AssignTarget& target, const Tensor& values);
  // Once, with a place among the functions.
  absl::Status AssignPiece(Assignment piece);
  // Takes a checkpoint into the folder that `claim` makes. `state->manifest`: what it is to say.
  // `what`: in which moment, see ServerTask.
  absl::Status Save(const std::shared_ptr<TaskState>& state, ServerTask what);
  absl::StatusOr<pb::CheckpointProto> SaveNumbered(pb::CheckpointProto manifest, ServerTask what,
                                                   std::string* used);
  // Loads the checkpoint in state->folder.
  absl::Status Load(const std::shared_ptr<TaskState>& state);

  // Resolves a dataset's files and counts their records, once. `may`, if given: its error ends
  // this before a file is looked at.
  absl::StatusOr<DataLayout> PrepareDataset(uint64_t id,
                                            const std::function<absl::Status()>& may = nullptr)
      ABSL_LOCKS_EXCLUDED(prepare_mutex, data_mutex);
  std::optional<DataLayout> Prepared(uint64_t id) ABSL_LOCKS_EXCLUDED(data_mutex);
  // Looks at the files of the data that the checkpoint stopped in. INVALID_ARGUMENT if this program
  // has not created it; as CheckSameData if it is other data by now.
  absl::StatusOr<std::vector<ResumePoint::Data>> PrepareDataOf(const pb::CheckpointProto& manifest)
      ABSL_LOCKS_EXCLUDED(prepare_mutex, data_mutex);
  // INVALID_ARGUMENT if the checkpoint is not one of this job.
  absl::Status CheckJob(const TaskState& state);
  // Fills in with what the job goes on from that checkpoint. INVALID_ARGUMENT if it does not fit,
  // FAILED_PRECONDITION if data files have changed since.
  absl::Status PrepareResume(TaskState* state) ABSL_LOCKS_EXCLUDED(prepare_mutex, data_mutex);

  const Options options;
  const std::unique_ptr<Transport> transport;
  ServerCalls servers;
  JobCheckpoints checkpoints;
  std::unique_ptr<Runtime> runtime;
  // For handles of groups, which may outlive the coordinator.
  struct There {
    Mutex mutex;
    Runtime* runtime ABSL_GUARDED_BY(mutex) = nullptr;  // null: it is gone
  };
  const std::shared_ptr<There> there = std::make_shared<There>();
  std::unique_ptr<Monitor> monitor;  // shows the runtime
  std::shared_ptr<void> environment;

  Mutex prepare_mutex;  // held while files are looked at, which may take long
  Mutex data_mutex ABSL_ACQUIRED_AFTER(prepare_mutex);
  // With patterns, until prepared.
  std::map<uint64_t, pb::DatasetProto> datasets ABSL_GUARDED_BY(data_mutex);
  std::map<uint64_t, DataLayout> prepared ABSL_GUARDED_BY(data_mutex);
};

}  // namespace mu
