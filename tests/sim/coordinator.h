// The coordinator of the simulation: a shell around the product's core. It brings messages to the
// core as events and carries out its actions as messages; its user schedules functions until the
// data is used up, takes checkpoints and, in a new coordinator, continues from the newest one.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/base/resumable_stream.h"
#include "common/client/feed_retries.h"
#include "coordinator/core/checkpoint_rules.h"
#include "coordinator/core/core.h"
#include "coordinator/core/resume_search.h"
#include "coordinator/core/unseen_errors.h"
#include "tests/sim/daemon.h"
#include "tests/sim/disk.h"
#include "tests/sim/message.h"

namespace mu::sim {

// A generation as messages carry it: coordinators of two epochs never use the same.
inline uint32_t OnWire(Generation generation) {
  return static_cast<uint32_t>((generation.value() >> 32) * 1000 +
                               (generation.value() & 0xffffffff));
}

inline constexpr uint64_t kDataset = 1;
inline DataLeases::Plan PlanOf(const DataLayout& data, uint64_t epoch) {
  return std::make_shared<const EpochPlan>(*EpochPlan::Make(data, epoch));
}

class Coordinator final : public Process {
 public:
  Coordinator(Cluster* cluster, Slot slot, uint64_t incarnation);

  void Start() override;
  void AfterAll() override;
  void OnConnectionLost(uint64_t incarnation);
  void OnDaemonDied(uint64_t incarnation);
  // The user cancels all.
  void Cancel();
  // The next run fails with its user's error, or the next two.
  void UserError();
  // The user creates a function that workers find wrong.
  void BadFunction();
  // The user goes back to the values of a checkpoint as soon as nothing of training runs.
  void UserRestore();
  // The program ends: for a moment daemons can still take their leave.
  void Close();
  // The user wants other synchronous rounds as soon as nothing of training runs.
  void ChangeRounds() { wants_rounds_ = true; }

  // For the checker.
  struct Place {
    Slot slot = kNowhere;  // nobody is a member
    uint64_t incarnation = 0;
  };
  Place PlaceOf(pb::Role role, uint32_t index) const;
  void CheckMemory() const;
  std::string Progress() const;
  int64_t rolled_back() const { return core_.rolled_back(); }
  // This worker is about to be killed: notes what it is in the middle of. Decides nothing, for the
  // coordinator does not know yet.
  void WorkerDies(uint64_t incarnation);

 private:
  // Several tries: what the network loses is not noticed before a call's time is over.
  static constexpr RetryPolicy kTries = {.call_timeout = absl::Nanoseconds(kCallTimeout),
                                         .total_timeout = absl::Nanoseconds(3 * kCallTimeout),
                                         .first_backoff = absl::Nanoseconds(5 * kMillisecond),
                                         .longest_backoff = absl::Nanoseconds(40 * kMillisecond)};

  // Workers that are sent something at a time, unless they have not answered for so long.
  static constexpr int64_t kMostInstalls = 2;
  static constexpr Time kInstallPatience = 20 * kMillisecond;

  bool ended() const { return !core_.ended().ok(); }
  void Step(Event event);
  void Do(action::AnswerRegister& a);
  void Do(action::AnswerHeartbeat& a);
  void Do(action::AnswerLeave& a);
  void Do(action::MemberJoined& a);
  void Do(action::MemberLost& a);
  void Do(action::Install& a);
  void Do(action::MakePlan& a);
  void Do(action::ScanFiles& a);
  void Do(action::FileCounts& a);
  void Do(action::ScanDone& a);
  void Do(action::Scheduled& a);
  void Do(action::Start& a);
  void Do(action::StopRun& a);
  void Do(action::Deliver& a);
  void Do(action::KeepResult& a) { kept_steps_[a.function] = handling_->step; }
  void Do(action::DeliverKept& a);
  void Do(action::CommitRound& a);
  void Do(action::Finish& a);
  void Do(action::GroupFailed& a);
  void Do(action::LoadView& a);
  void Do(action::DropView& a);
  void Do(action::ViewUnused& a) { views_.erase(a.view); }
  void Do(action::CancelOnWorkers& a);
  void Do(action::FenceServers& a);
  void Do(action::Cancelled& a);
  void Do(action::Paused&);
  void Do(action::Restore& a);
  void Do(action::TaskDone& a);
  void Do(action::Configure& a);
  void Do(action::Assign& a);
  void Do(action::LookAtFiles& a);
  void Do(action::CheckpointBad& a) { bad_.insert(FolderOf(a.task, a.point)); }
  void Do(action::Load& a);
  void Do(action::UseRouting&);
  void Do(action::Serving&);
  void Do(action::InterruptServers&);
  void Do(action::Save& a);
  void Do(action::WriteManifest& a);
  void Do(action::Committed& a);
  void Do(action::Aborted& a);
  void Do(action::Note& a);
  template <typename A>
  void Do(A&) {}  // nothing to do

  void HandleRequest(const Message& message) override;
  Message WithContext(Message message) const;
  // Members (coordinator_members.cc).
  template <typename E>
  void AskCore(const Message& message);
  void Answer(mu::CallId id, const absl::Status& status, Message reply);
  // Functions (coordinator.cc).
  void OnStepResult(const StartRun& start, const Message& message);
  void NoteBound();
  std::vector<uint16_t> RecordsOf(const FunctionQueue::Function& function) const;
  void Monitor();
  // The user (coordinator_user.cc).
  bool EpochIsOver() const;  // all of it has been handed out, and nothing follows it by itself
  bool AllScheduled() const;
  bool Joins() const;  // it schedules nothing before what there is has ended
  void Feed();
  void ActWhenQuiet();
  void CheckDone();
  void RestoreValues();
  void ValuesRestored();
  // This run is the one that fails, if one is to.
  void LetFail(Message* run);
  // What users are told when this is handled, since a worker is the first to refuse a function.
  absl::Status RefusalIn(const Event& event) const;
  // A function ends with an error, or a worker refuses one: it ends the others.
  void NoteError(const absl::Status& error);
  // After a cancellation: its next call that may be answered tells the user of the error.
  void HearError();
  // Evaluations (coordinator_groups.cc).
  static constexpr uint64_t kNoValue = ~uint64_t{0};
  struct Evaluation {
    uint64_t folder = 0;                       // of its checkpoint; 0: it reads the current values
    uint64_t expected = kNoValue;              // what each step of it reads, of a checkpoint
    uint32_t functions = 0;                    // that are scheduled
    std::map<FunctionId, uint32_t> delivered;  // steps
    std::map<FunctionId, bool> finished;       // whether with its results
    bool bad = false;                          // its next run fails
    bool may_end = false;                      // it has failed, or its user has cancelled it
    absl::Status error;                        // the first
  };
  void Evaluate();
  void MakeGroup(GroupId group, uint64_t folder);
  void NoteGroupError(GroupId group, const absl::Status& error);
  bool EvaluationsDone() const;
  void CancelGroup(GroupId group);
  uint64_t ValueOf(const Checkpoint& checkpoint) const;
  void StartInGroup(const StartRun& start, Message* run);
  void DeliverInGroup(FunctionId function);
  void FinishInGroup(const action::Finish& a);
  void CheckGroups(bool about_group, bool was_cancelling);
  bool Holds(uint64_t folder) const;
  // Streams to workers (coordinator_feeds.cc), as FeedClient and the runtime have them.
  struct Stream {
    Slot slot = kNowhere;
    uint64_t incarnation = 0;
    uint32_t stream = 0, connection = 0;
    bool open = false;
    absl::Status ended;  // not OK: no run can be started on it any more
    FeedRetries retries;
    ResumableStream<Message> end;
    std::map<RunId, StartRun> runs;                // whose ends have not come
    std::set<std::pair<uint64_t, uint8_t>> steps;  // whose results have come, by run
  };
  Stream& FeedTo(WorkerId worker);
  void Say(Stream& feed, Message message);
  void WriteAll(Stream& feed);
  void Connect(WorkerId worker, uint32_t stream);
  void OnFeed(const Message& message);
  void OnFeedBroken(WorkerId worker, uint32_t connection, const absl::Status& why);
  void CountSilence(WorkerId worker, uint32_t stream);
  void TakeFeed(WorkerId worker, Stream& feed, const Message& message);
  void EndFeed(WorkerId worker, const absl::Status& status);
  void DropFeed(WorkerId worker);
  Stream* FindFeed(WorkerId worker, uint32_t stream);
  // As the product's PendingError.
  struct ToldError {
    explicit ToldError(absl::Status error) : status(std::move(error)) {}
    absl::Status Report() {
      reported = true;
      return status;
    }
    const absl::Status status;
    bool reported = false;
  };
  // Tasks (coordinator_checkpoint.cc).
  void Ask(TaskId* task, ServerTask what);
  uint64_t FolderOf(TaskId task, CheckpointNumber point) const;
  // The program has created everything: it continues from a checkpoint, if there is one.
  void Continue(ResumeSearch::Next next);
  void Begun();
  // Of a checkpoint that is to be read.
  absl::Status ReadManifest(uint64_t folder);
  // What servers find where this checkpoint was: another one, if its folder is renamed now.
  uint64_t FoundIn(uint64_t folder);
  // A disk that is full, a folder that is shut: what is to be done fails.
  bool FolderIsShut();
  void Delete(uint64_t folder);
  pb::JobPositionProto ManifestPosition() const;
  void TakeCheckpoints();
  void TakeCheckpoint();
  // Calls (coordinator_servers.cc).
  Messages ToServers(Message request) const;
  // All servers are configured in this generation, and get this checkpoint's state (0: the initial
  // one) but for those that keep theirs.
  void SetState(Generation generation, std::optional<uint64_t> folder, std::vector<bool> keep,
                Done done);

  const uint32_t expected_servers_;
  const uint32_t epoch_;
  Core core_;
  std::deque<Event> events_;  // that the core has not been told of
  bool stepping_ = false;
  bool error_waits_ = false;  // of training, for earlier runs of its worker
  UnseenErrors<ToldError> errors_;
  bool cancelled_ = false;  // the user has not called since
  const Message* handling_ = nullptr;
  mu::CallId last_call_;
  std::map<mu::CallId, Message> asked_;                   // by daemons
  std::map<FunctionId, std::vector<uint16_t>> records_;   // of functions that somebody waits for
  std::map<FunctionId, std::vector<uint16_t>> repeated_;  // of those that ran again afterwards
  std::set<FunctionId> only_read_;                        // functions of training
  std::map<FunctionId, FunctionId> turns_;  // all below this had finished when it was scheduled
  FunctionId turn_;                         // of the newest

  std::map<WorkerId, Stream> feeds_;
  uint32_t last_stream_ = 0;
  std::map<FunctionId, uint8_t> kept_steps_;  // whose round is not committed
  bool nothing_more_told_ = false;
  bool was_awaited_ = false;  // some training was, before the event that is handled
  bool out_of_data_ = false;  // a worker is, which reads by itself: the user schedules no more
  int skips_ = 0;             // commitments of rounds without steps that are under way

  uint32_t evaluations_ = 0;  // that were begun
  GroupId evaluation_;        // that is under way
  std::map<GroupId, Evaluation> groups_;
  std::map<ViewId, uint64_t> views_;  // their folders

  bool beginning_ = true;  // the program has not continued its job yet
  TaskId last_task_;
  TaskId beginning_task_, save_task_, assign_task_, restore_task_, read_task_;  // 0: none
  std::optional<ResumeSearch> search_;
  uint64_t begin_from_ = 0;
  std::optional<Checkpoint> begin_checkpoint_;  // that one, as it was then
  FunctionQueue::Position begin_functions_;     // of its manifest
  Generation generation_;                       // that the servers were given last
  std::vector<Place> given_state_;              // these servers
  uint32_t catalog_ = 0;                        // version
  uint32_t routing_ = 0, routing_place_ = 0;    // its version, and where it is
  uint64_t bad_functions_ = 0;
  std::map<uint64_t, Time> installing_;  // since when, by incarnation
  bool wants_restore_ = false, wants_rounds_ = false, wants_join_ = false, thinks_ = false;
  bool blocks_ = false;                           // the user's thread, while it reads
  uint64_t restore_from_ = 0;                     // of restore_task_: the folder
  std::optional<Checkpoint> restore_checkpoint_;  // that one, as it was then
  Messages restore_answers_;                      // of the servers that have loaded it
  const uint64_t own_since_;                      // folders after this one are this coordinator's
  std::map<FunctionId, std::vector<uint16_t>> finished_;  // their records
  int64_t failing_runs_ = 0;                              // so many of the next ones fail
  std::map<std::string, StartRun> user_errors_;           // that have come, each with its run
  std::map<CheckpointNumber, uint64_t> folders_;          // on the disk
  std::set<uint64_t> bad_;                                // of them
  CheckpointClaim claim_;
  std::set<uint32_t> files_seen_, files_counted_;  // of the data, by some worker
  Time done_at_ = 0;
};

}  // namespace mu::sim
