// Which function runs where: the queue of scheduled functions and what is in flight to each worker.
// A pure state machine: events in, actions out; no clock, thread or socket.
//
// A function is bound to its batches when it is dispatched for the first time and keeps them for
// good; when its worker is lost it goes back to the queue in its old place and resumes, anywhere,
// at the first step whose result has not arrived.
//
// Functions that change state are kept after they have finished, as long as one of the newest
// restore points (committed checkpoints, the initial values) does not contain them: when the
// servers go back to a point (RollBack), all that it lacks run again, with the same ids and
// batches; each server ignores the steps that its state contains. Results are delivered once,
// however often a step runs. Where a worker hangs without being lost, what it has runs elsewhere
// too (Tick): the run that has the next result first is the one that counts. An assignment that was
// made between functions keeps its place among them.
//
// With a bound on staleness (BoundStaleness) a function that changes state starts only when the
// steps of others that are more than so many before its last step have their results: all servers
// have applied them. Its own steps follow each other on its worker, so none of them runs ahead
// either, and nothing waits on a worker or a server. In rounds the bound has no effect.
//
// In synchronous rounds (SetRounds) a function that changes state runs one step at a time. Its
// result makes the step complete (Contribute); it counts when its round is committed.
//
// Functions of groups (group_id.h) only read. Each group has a queue of its own beside training's:
// within a queue none overtakes another. A worker that has room is given a function of each queue
// in turn, so that neither starves, whatever the others wait for. What ends training leaves groups
// alone (CancelAll), and the reverse (CancelGroup).
#pragma once

#include <algorithm>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "coordinator/core/batch_range.h"
#include "coordinator/core/checkpoint_number.h"
#include "coordinator/core/function_work.h"
#include "coordinator/core/group_id.h"
#include "coordinator/core/kept_bytes.h"
#include "coordinator/core/queued_function.h"
#include "coordinator/core/rounds.h"
#include "coordinator/core/step_times.h"
#include "coordinator/core/worker_pace.h"
#include "coordinator/core/worker_pool.h"
#include "proto/dataset.pb.h"
#include "proto/tensor.pb.h"

namespace mu {

class FunctionQueue {
 public:
  // Binds up to `steps` batches of a dataset for a function that goes to a worker; nullopt: it has
  // to wait for them.
  using Binder = std::function<std::optional<std::vector<BatchRange>>(uint64_t dataset, WorkerId,
                                                                      uint32_t steps)>;

  using Function = QueuedFunction;

  // `points`: to how many of the newest restore points it can roll back.
  FunctionQueue(int in_flight_per_worker, Binder binder, BackupRule backup = {}, size_t points = 2)
      : in_flight_(in_flight_per_worker),
        binder_(std::move(binder)),
        most_points_(points),
        backup_(backup) {}

  FunctionId Schedule(FunctionWork work);
  // The worker has installed everything up to `version`; also when it grows.
  void WorkerReady(WorkerId worker, uint64_t version);
  // From now on functions run only on workers that have installed this version or a later one: the
  // servers have moved.
  void RequireVersion(uint64_t version);
  // It is leaving: what it runs may end there, nothing else is started on it.
  void WorkerDrains(WorkerId worker);
  // Nothing is started on it while it is set aside.
  void SetAside(WorkerId worker, bool aside);
  // Its functions go back to the queue.
  void WorkerLost(WorkerId worker);
  // To be asked before WorkerLost: the function that is likely to be the end of whoever runs it (a
  // step that needs more memory than there is, say), because many workers in a row were lost with
  // it before a step of it had a result. Losses that are nobody's fault happen, but not so often
  // within one step. `most`: how many are too many.
  std::optional<FunctionId> DeadlyOn(WorkerId worker, uint32_t most);

  // Steps of this function took so long on this worker: one that is slow gets less, and nothing at
  // the end that others would have done before it.
  void StepsTook(WorkerId worker, FunctionId function, double seconds_each);

  struct BackupRun {
    FunctionId function;
    WorkerId hung;  // where it keeps running
    double silent_seconds = 0;
  };
  // Time goes on: `now` in seconds since any moment. Takes from workers that hang what they have,
  // so that the next Dispatch starts it elsewhere. Such a worker gets nothing more until the runs
  // that it has end, or it is lost. A worker's silence begins at the first Tick after its last
  // result.
  std::vector<BackupRun> Tick(double now);
  // A backup run has taken the place of this one, which has not ended yet.
  bool IsSuperseded(RunId run) const { return superseded_.contains(run); }

  // It is so late now, in seconds since any moment.
  void SetTime(double now) { time_ = now; }
  // What to start now. Functions for which no data is left complete with fewer or no steps: those
  // with none are returned in `*completed` at once, and in `*without_data`, unless that is null,
  // with what had none for them. `held` (may be null) says which functions that change
  // state have to wait; nothing overtakes them. `begun`: it was started before.
  // `open` (may be null) says whether functions of this one's group may start that read what it
  // reads.
  struct WithoutData {
    uint64_t dataset = 0;
    GroupId group;
  };
  using Held = std::function<bool(FunctionId function, bool begun)>;
  using Open = std::function<bool(const FunctionWork& work)>;
  std::vector<StartRun> Dispatch(std::vector<FunctionId>* completed, const Held& held = nullptr,
                                 std::map<FunctionId, WithoutData>* without_data = nullptr,
                                 const Open& open = nullptr);

  // How many steps may lie between a step that starts and the oldest one without a result;
  // nullopt, the default: any number. Does not hold for contributions to rounds.
  void BoundStaleness(std::optional<uint64_t> steps) { most_ahead_ = steps; }
  // A result may let a function start that the last Dispatch left waiting for this bound.
  bool waits_for_steps() const { return waits_for_steps_; }
  // Functions that have waited for it.
  uint64_t waited_for_steps() const { return waited_for_steps_; }

  // What has become of a run's function.
  enum class Ended { kCompleted, kRequeued, kIgnored };

  // Synchronous rounds. While no function that changes state is unfinished.
  void SetRounds(const RoundRules& rules);
  const RoundRules& rounds() const { return rules_; }
  bool Contributes(const Function& function) const { return rules_.on() && function.work.trains; }
  // The open one, from 1. Updates are counted: a round is one, and so is each step of another mode,
  // so the number grows by more than 1 where that was used before.
  uint64_t round() const { return round_; }
  void SetRound(uint64_t round) { round_ = std::max<uint64_t>(1, round); }
  // The result of a contribution has come. False for one of an older run or round.
  bool Contribute(FunctionId function, RunId run, uint32_t step);
  // Contributions are complete, none runs, and none can start before these are committed.
  // `nothing_more`: nothing will be scheduled.
  bool NothingCanJoin(bool nothing_more) const;
  // The rounds that its next step was too late for, if these are so many that the open one waits
  // for it; else 0.
  uint32_t RoundsMissedIfDue(FunctionId function) const;
  // Such a step runs, or is queued and may start with the Dispatch that is about to come.
  bool WaitsForDue(bool about_to_dispatch) const;
  // When a contribution is late, so that a worker that has given its own may start another one: the
  // last Dispatch has left one waiting for that. nullopt: it has not.
  std::optional<double> surplus_at() const { return surplus_at_; }
  // No contribution starts until the round is committed or stopped; CancelAll leaves its set.
  void CloseRound(std::set<FunctionId> set) { decided_ = std::move(set); }
  // The round is committed: for each of its set these two, then NextRound. Whether the step's
  // result is to be delivered.
  bool CommitStep(FunctionId function, uint32_t samples);
  bool EndStep(FunctionId function);  // whether the function has finished with it
  // As RunEnded: servers have refused the step, for they have applied the round that is decided.
  Ended CameTooLate(FunctionId function, RunId run);
  // What is not in the set runs again; how many these are.
  size_t NextRound();

  // True if the result is to be delivered; false for one of an older run, or one that was delivered
  // before. `*current` (not null): whether it is of the current run.
  bool StepDone(FunctionId function, RunId run, uint32_t step, uint32_t samples = 0,
                bool* current = nullptr);

  // The stream of a run has ended. Completed if every step has its result, else the function is
  // requeued.
  Ended RunEnded(FunctionId function, RunId run);
  // The same for a run that ended because its worker cannot reach a server. The fault may lie
  // between these two, so the function goes to the other workers first.
  Ended ServerUnreached(FunctionId function, RunId run);

  // What a worker says of a run makes no sense. The function is to be run again, by whichever
  // worker, but not for ever.
  enum class Unreadable { kIgnored, kRunAgain, kGiveUp };
  Unreadable AnswerUnreadable(FunctionId function, RunId run);

  // Removes a function that failed; false if the run is not the current one. Also a repeat, which
  // would only fail again: users are told, and go on without what it did.
  bool Remove(FunctionId function, RunId run);
  // Removes all of training; returns what was removed. Runs under way are no longer current.
  // Repeats are not what somebody waits for: their functions are kept again.
  // `all`: also the set of a round that is decided, which is else left to be committed.
  std::vector<FunctionId> CancelAll(bool all = false);
  // Removes all of a group, not training. Runs under way (`run` is not 0) are no longer current.
  struct Cancelled {
    FunctionId function;
    WorkerId worker;
    RunId run;
  };
  std::vector<Cancelled> CancelGroup(GroupId group);
  // CancelAll has ended repeats: the servers lack what they ought to hold until the next RollBack.
  bool repeats_cancelled() const { return repeats_cancelled_; }
  // Every run goes back to its queue, at its first step without a result.
  void StopRuns();

  // An assignment is about to be made, after everything that was scheduled before it. Its id is its
  // identity on the servers: the mark stays below it until Assigned, EndAssignment or CancelAll.
  FunctionId BeginAssignment();
  bool AssignmentOpen(FunctionId id) const { return assigning_.contains(id); }
  // It has been made, and will be repeated after a RollBack to a point that lacks it. Repeats keep
  // its place.
  void Assigned(FunctionId id, std::shared_ptr<const Assignment> assignment);
  // It has been made and will not be repeated, or was given up.
  void EndAssignment(FunctionId id) { assigning_.erase(id); }
  // The assignment that has to be repeated now: everything before it has finished, nothing after it
  // has begun.
  std::optional<FunctionId> NextAssignment() const;
  void AssignmentDone(FunctionId id);
  bool HasAssignments() const { return assignments_ > 0; }  // to be repeated, now or later
  // Whether a function or an assignment below this id that had finished is being repeated.
  bool IsRepeating(FunctionId before) const;
  // Everything below had finished when the first of what is awaited was scheduled.
  FunctionId turn() const { return awaited_ > 0 ? after_ : next_id_; }

  // What the cuts of a checkpoint may contain in part or not at all; what had finished before is
  // whole in every cut.
  struct Position {
    FunctionId next_id{1};
    std::map<FunctionId, Function> unfinished;  // those that change state
    std::set<FunctionId> assigning;  // assignments that some of the servers may have and others not
    uint64_t round = 0;              // the open one; 0: there are no rounds
  };
  // A checkpoint is begun: every server takes its cut after this.
  Position CheckpointPosition() const;
  // Every server has taken its cut. What was scheduled or bound meanwhile may be in some cuts and
  // not in others, so it runs again with the same id and batches: this is the position that a
  // coordinator resumes from, together with the data's position of this moment.
  Position AfterCuts(const Position& begun) const;
  // The checkpoint that was begun at this position is complete.
  void CheckpointCommitted(CheckpointNumber checkpoint, const Position& begun);
  // Nothing that was scheduled so far will be repeated: values were loaded, that is the only point
  // now. With them came the memory of which steps of functions below `next` they contain, of
  // another run perhaps: no id below it is given out from now on.
  void StartFrom(CheckpointNumber point, FunctionId next = FunctionId(1));
  // Nobody will go back to a point from now on.
  void ForgetKept();
  // What changed state so far was not kept: there is nothing to go back to until a checkpoint is
  // committed.
  void ForgetPoints();
  struct RolledBack {
    uint64_t functions = 0;
    uint64_t steps = 0;    // whose results had arrived and that run again
    uint64_t samples = 0;  // in these
  };
  // The servers go back to this point, one of points(): everything that changes state and that it
  // lacks runs again. Runs under way are no longer current. Newer points are forgotten.
  RolledBack RollBack(CheckpointNumber point);
  // Continues after a checkpoint's position, in a coordinator that has scheduled nothing yet. What
  // it assigned is covered by the point: StartFrom came before.
  void Resume(CheckpointNumber point, const Position& position);
  std::vector<CheckpointNumber> points() const;  // oldest first

  // Every function below it has finished and will not be repeated.
  FunctionId low_water() const;
  FunctionId next_id() const { return next_id_; }
  // Steps of functions that change state which have been bound to their batches, ever.
  uint64_t taken_steps() const { return taken_steps_; }
  void SetTakenSteps(uint64_t steps) { taken_steps_ = counted_steps_ = steps; }
  bool scheduled() const { return scheduled_; }  // a function, ever
  bool begun() const { return begun_; }          // one that changes state was, or Resume was called
  const Function* Find(FunctionId id) const;
  // Of training, but for running() and unfinished_in_groups().
  size_t queued() const { return queued_.size(); }
  size_t running() const;  // or complete in the open round
  size_t unfinished() const { return functions_.size() - unfinished_in_groups_; }
  // One of these (of those that train) has never finished: somebody waits for it.
  bool IsAwaited() const { return awaited_ > 0; }
  bool IsTrainingAwaited() const { return training_awaited_ > 0; }
  size_t queued(GroupId group) const;
  size_t unfinished(GroupId group) const;
  size_t unfinished_in_groups() const { return unfinished_in_groups_; }
  // Whether a function that has not finished, or is repeated, reads this dataset.
  bool IsRead(uint64_t dataset) const;
  // The groups that have functions of this definition which have not finished.
  std::set<GroupId> UsersOf(Fingerprint definition) const;
  size_t kept() const { return kept_.size(); }
  // The memory that these take, with their batches, arguments and assignments' values.
  uint64_t kept_bytes() const { return kept_bytes_.bytes(); }
  // By how much that has grown since the newest point.
  uint64_t uncovered_bytes() const { return kept_bytes_.bytes() - covered_bytes_; }
  // Steps of functions of this dataset that have not been bound to batches.
  uint64_t UnboundSteps(uint64_t dataset) const;
  std::vector<FunctionId> RunningOn(WorkerId worker) const;  // oldest first
  // Functions that have finished since the newest point.
  size_t uncovered() const { return uncovered_; }
  // Steps (with records, if they read any) and samples that were delivered but that run again: the
  // totals say more than the servers' state holds.
  RolledBack Repeating() const;
  size_t InFlight(WorkerId worker) const;

 private:
  struct Worker {
    uint64_t version = 0;
    std::map<RunId, FunctionId> runs;  // current ones, in the order in which they were started
    bool draining = false;
    size_t superseded = 0;  // runs that it still has, although backup runs have taken their places
    bool news = false;      // since the last Tick: a result, or its first function
    double silent = 0;      // seconds without news at the last Tick
    bool aside = false;
    bool gave = false;    // to the open round, or meanwhile too late to an earlier one
    double began_at = 0;  // when its first run began, or had its last result
    WorkerPace pace;
  };
  // Those that may run a function, with what they need to have installed.
  struct Pool {
    Fingerprint fingerprint;
    uint64_t version = 0;
    WorkerPool workers;
  };
  struct Superseded {
    FunctionId function;
    WorkerId worker;
  };
  // What has to run again after a restore to a point.
  struct Point {
    FunctionId next_id{1};
    std::map<FunctionId, uint32_t> unfinished;  // the first step whose result had not arrived
    uint64_t round = 0;
    // The first step to run again; nullopt: the point contains all of the function.
    std::optional<uint32_t> FirstStep(FunctionId id) const;
  };
  // The functions of a group.
  struct Lane {
    std::set<FunctionId> queued;
    size_t unfinished = 0;
  };
  // What one Dispatch has and says.
  struct Dispatching {
    const Held& held;
    const Open& open;
    std::vector<FunctionId>* completed;
    std::map<FunctionId, WithoutData>* without_data;
    std::vector<StartRun> starts;
    size_t in_round = 0;
  };
  // The first of the group's queue starts, or completes without data. False: it waits.
  bool StartNext(GroupId group, Dispatching* dispatching);
  bool Bind(Function& function, WorkerId worker);
  std::set<FunctionId>& QueueOf(GroupId group) {
    return group == GroupId() ? queued_ : lanes_.at(group).queued;
  }
  std::map<FunctionId, Function>::iterator Erase(std::map<FunctionId, Function>::iterator it);
  static Point PointOf(const Position& position);
  static void Rewind(Function& function, uint32_t to, RolledBack* result);
  void ForgetCovered();
  void Keep(FunctionId id, Function function);
  Function TakeKept(std::map<FunctionId, Function>::iterator it);
  // The function, if this run is its current one; else the end of functions_.
  std::map<FunctionId, Function>::iterator Current(FunctionId id, RunId run);
  void Requeue(FunctionId id, Function& function);
  // The run is no longer its function's current one.
  void TakeFromWorker(Function& function);
  void Complete(std::map<FunctionId, Function>::iterator function);
  // The step is done. Whether its result is to be delivered.
  static bool CountStep(Function& function, uint32_t step, uint32_t samples);
  size_t RunningContributions() const;
  // One more than the round's `in_round` needs may start on this worker.
  bool MayHaveSurplus(const Worker& worker, size_t in_round);
  struct LeaseKey {
    uint64_t dataset = 0, epoch = 0, index = 0;
    friend bool operator==(const LeaseKey&, const LeaseKey&) = default;
  };
  // That the next step reads; nullopt: none.
  static std::optional<LeaseKey> NextLease(const Function& function);
  void ForgetRound();
  // More than the bound lies between its last step and the oldest one of others without a result.
  bool TooFarAhead(FunctionId id, const Function& function) const;
  // What had finished before it, as its user sees it, is being repeated.
  bool WaitsForRepeats(FunctionId id, const Function& function) const;
  void CountAwaited(const Function& function, bool more);
  uint64_t VersionFor(const FunctionWork& work) const {
    return std::max(work.needs_version, least_version_);
  }
  static bool MayRun(const Worker& worker, uint64_t version);
  static bool IsLate(const Worker& worker, std::optional<double> step_seconds);
  WorkerPool& PoolFor(const FunctionWork& work);
  // To be called after every change of the worker.
  void Changed(WorkerId id, const Worker& worker);
  static void Enter(WorkerId id, const Worker& worker, Pool* pool);
  std::map<FunctionId, Function>::iterator FirstOn(WorkerId worker);
  // By their silence, the least silent first.
  using BySilence = std::vector<std::pair<double, WorkerId>>;
  bool OthersGoOn(WorkerId silent, const FunctionWork& work, const BySilence& workers) const;
  void CountUnbound(const FunctionWork& work, bool added);
  void CountUncovered();
  void Supersede(FunctionId id, Function& function);
  // The superseded run is the current one again; false if it is none of this function.
  bool TakeBack(FunctionId id, Function& function, RunId run);
  void EndSuperseded(std::map<RunId, Superseded>::iterator run);
  void ForgetSuperseded(bool of_groups);
  void EndLate(FunctionId id, Worker* worker);  // a run that was for an earlier round

  const size_t in_flight_;
  const Binder binder_;
  const size_t most_points_;
  const BackupRule backup_;
  FunctionId next_id_{1};
  FunctionId next_in_groups_ = kFirstInGroups;
  RunId next_run_{1};
  uint64_t taken_steps_ = 0, reading_steps_ = 0;  // bound ones that change state, and others
  // Of all functions, of which thousands may run, only those that wait are looked at to dispatch.
  std::map<FunctionId, Function> functions_;  // unfinished ones, oldest first
  std::set<FunctionId> queued_;               // of training, those that do not run
  std::map<GroupId, Lane> lanes_;             // of groups with unfinished functions
  size_t unfinished_in_groups_ = 0;
  size_t awaited_ = 0, training_awaited_ = 0;  // of functions_, see QueuedFunction::awaited
  FunctionId after_;                           // of the newest function, see QueuedFunction::after
  GroupId last_turn_;                          // whose function started last
  size_t assignments_ = 0;                     // of them
  std::map<uint64_t, uint64_t> unbound_;       // steps of theirs that take batches, by dataset
  // Finished, and not in every point. Changed by Keep, TakeKept and ForgetKept only.
  std::map<FunctionId, Function> kept_;
  KeptBytes kept_bytes_;            // of kept_
  uint64_t covered_bytes_ = 0;      // kept_bytes() right after the newest point, or less
  std::set<FunctionId> assigning_;  // assignments that are being made for the first time
  bool scheduled_ = false, begun_ = false, repeats_cancelled_ = false;
  std::map<CheckpointNumber, Point> points_{{kInitialValues, Point()}};
  size_t uncovered_ = 0;                // of kept_: what the newest point lacks
  std::map<WorkerId, Worker> workers_;  // see Changed
  std::list<Pool> pools_;               // of what was dispatched lately, the latest first
  std::map<RunId, Superseded> superseded_;
  StepTimes times_;
  double time_ = 0, round_began_ = 0;
  std::optional<double> now_;  // of the last Tick
  bool dispatched_ = false;    // something, since then
  uint64_t least_version_ = 0;
  std::optional<uint64_t> most_ahead_;
  bool waits_for_steps_ = false;
  uint64_t waited_for_steps_ = 0;
  RoundRules rules_;
  uint64_t round_ = 1;
  uint64_t counted_steps_ = 0;           // of taken_steps_, those that round_ has counted
  std::set<FunctionId> contributed_;     // complete in the open round: neither queued nor running
  std::set<FunctionId> decided_;         // of these, the round's set; none: it is open
  std::map<FunctionId, uint32_t> late_;  // rounds that its next step was too late for
  size_t refused_ = 0;                   // of the open round, by CameTooLate
  std::optional<LeaseKey> round_lease_;  // of the contributions of the open round
  std::optional<double> surplus_at_;
};

}  // namespace mu
