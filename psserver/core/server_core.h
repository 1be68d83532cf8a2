// All that a parameter server decides: who is admitted, which push is applied and which is a
// repeat, who waits for whom, what is acknowledged and with which counts, how saves, cuts, fences
// and restores exclude each other, what a coordinator's Configure replaces. Pure: no clock, thread,
// lock, tensor, file or call. The runtime (PsServer) and the simulation are two shells around it.
//
// The data plane is concurrent, so the core has a method for each decision instead of one queue of
// events: the shell calls it under a lock that it holds for nothing else, and changes rows outside.
// What has to wait asks again after a decision that may end its waiting: the comments say which.
// Times are the shell's clock's, in nanoseconds.
//
// Not synchronised. Errors: those of Admission (psserver/core/admission.h), and what each method
// says.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "proto/coordinator.pb.h"
#include "proto/psserver.pb.h"
#include "psserver/core/admission.h"
#include "psserver/core/assigned_places.h"
#include "psserver/core/cut_gate.h"
#include "psserver/core/cut_memory.h"
#include "psserver/core/definitions_change.h"
#include "psserver/core/push.h"
#include "psserver/core/push_memory.h"
#include "psserver/core/round_buffer.h"
#include "psserver/core/save_line.h"
#include "psserver/core/update_clocks.h"
#include "psserver/core/view_table.h"

namespace mu {

// An assignment: its place among the functions, and what it gives a value to.
struct PsAssignment {
  uint64_t place = 0;
  uint32_t variable = 0;
  uint32_t partition = 0;
  uint64_t value_hash = 0;
  absl::string_view name;  // of the variable, for errors
  bool table = false;      // `variable` is a table's id
};

struct RestoreAsked {
  bool keep_state = false;
  bool has_files = false;  // otherwise: the initial values
  std::string content;     // what is restored: the same in repeats, and in nothing else
};

struct RestoreTurn {
  enum class Step {
    kRefuse,  // `status`
    kAnswer,  // `reply`: a repeat
    kKept,    // a repeat, of a restore that kept the state: answer with what it holds now
    kVerify,  // see that the files are whole, then ask again: a state that would be missed is given
              // up only for files that are
    kBegun,   // when RestoreMayStart: StartRestore; replace the state unless it is kept, seeing
              // again that the files are whole, since they may have changed; EndRestore
    kIsHere,  // the state is what these files hold, from an earlier restore, and nothing has
              // changed it: when RestoreMayStart: StartRestore; EndRestore with `reply`
  };
  Step step = Step::kRefuse;
  absl::Status status;
  muster::RestoreReply reply;
};

struct ViewTurn {
  enum class Step {
    kRefuse,  // `status`
    kWait,    // another call loads the view: ask again after EndLoadView, DropView or EndConfigure
    kLoad,    // ReserveView; load; EndLoadView; ask again
    kAnswer,  // it is here, with so many bytes
  };
  Step step = Step::kRefuse;
  absl::Status status;
  ViewTable::Load load;
  uint64_t bytes = 0;
};

class ServerCore {
 public:
  struct Options {
    bool leased = false;     // serve only while the lease that RenewLease extends lasts
    bool registers = false;  // refuse everybody until SetIdentity
    size_t most_remembered = Ledger::kDefaultMost;  // entries of the ledger
  };

  explicit ServerCore(const Options& options)
      : admission_(options.leased, options.registers), pushes_(options.most_remembered) {}
  ServerCore(const ServerCore&) = delete;
  ServerCore& operator=(const ServerCore&) = delete;

  // Membership.
  absl::Status SetIdentity(uint64_t job, uint64_t epoch, uint32_t index) {
    return admission_.SetIdentity(job, epoch, index);
  }
  void RenewLease(int64_t sent_ns, absl::Duration lease, uint64_t least_generation) {
    admission_.RenewLease(sent_ns, lease, least_generation);
  }
  // May end nobody's waiting: what is in progress below the mark ends with EndPush.
  void RaiseLowWater(uint64_t function);

  // Pulls, and what else reads the state: under way until Leave, which may let a restore start.
  absl::Status Admit(int64_t now_ns, const muster::RequestContext& context);
  void Leave() { admission_.Leave(); }
  // What is read after this has at least these updates.
  uint64_t ReadClock(const ClockKey& key) const { return clocks_.Read(key); }
  absl::Status AdmitLook(const muster::RequestContext& context) const {
    return admission_.AdmitLook(context);
  }

  // Pushes. FAILED_PRECONDITION (ERROR_STALE) below the low-water mark; RESOURCE_EXHAUSTED
  // (IsAppliedFull) without room to remember it. `call` waits if the step is kWait.
  PushBegun BeginPush(int64_t now_ns, const muster::RequestContext& context, const PushId& push,
                      const PushPartitions& partitions, PsCallId call,
                      PushStaleness staleness = {});
  // After Admit, and after the shell has checked the value: without Leave. INVALID_ARGUMENT for a
  // place that another variable or value has.
  PushBegun BeginAssign(int64_t now_ns, const PsAssignment& assignment, PsCallId call);
  // Whether the push may change the state now. Refused with ABORTED (ERROR_STALE, IsTooLate): one
  // of its gradients is later than its function allows. That is not remembered: the step runs again
  // with newer values, and pushes under the same identity.
  PushEntered Enter(int64_t now_ns, AdmittedPush* push);
  // `applied`: OK, or why nothing was. May end the waiting of fences, of a cut and of a restore.
  PushEnded EndPush(int64_t now_ns, const AdmittedPush& push, const absl::Status& applied);

  // Synchronous rounds; see RoundBuffer. kApply: check the push, then Keep. A push that the ledger
  // would remember is remembered by its round instead. `call` waits if the step is kWait: the push
  // is being checked, which may take long, and is not checked twice.
  PushBegun BeginContribution(int64_t now_ns, const muster::RequestContext& context,
                              const PushId& push, const PushPartitions& partitions, uint64_t round,
                              uint32_t most, PsCallId call);
  // `checked`: OK, or why it is not kept.
  PushEnded Keep(int64_t now_ns, const PushId& push, uint64_t round, uint32_t most,
                 const absl::Status& checked, RoundBuffer::Gradients gradients);
  // FAILED_PRECONDITION (ERROR_STALE) for a round before the last that was applied.
  RoundTurn BeginRound(int64_t now_ns, const muster::RequestContext& context, uint64_t round,
                       const std::vector<PushId>& set);
  // `updates` partitions were changed. May end the waiting of a cut and of a restore. UNAVAILABLE
  // if Configure replaced the state meanwhile: the round changed one that is gone.
  PushAnswer EndRound(int64_t now_ns, uint32_t updates);

  // OK: no push below context.low_water begins any more. When FenceHolds says that none is in
  // progress either, Leave and answer.
  absl::Status BeginFence(int64_t now_ns, const muster::RequestContext& context);
  bool FenceHolds(uint64_t low_water) const { return !pushes_.InProgressBelow(low_water); }

  // True in the coordinator's Configure: it is newer than the last one's, so definitions and
  // placements that contradict the present ones replace them. One at a time until EndConfigure.
  absl::Status AdmitConfigure(const muster::RequestContext& context, uint32_t index) {
    return admission_.AdmitConfigure(context, index);
  }
  absl::StatusOr<bool> BeginConfigure(const muster::RequestContext& context);
  // After success. What was replaced serves only after a restore that does not keep it.
  // `restore_follows`: a server that has nothing yet serves nobody until that is done.
  void EndConfigure(const muster::RequestContext& context, DefinitionsChange change,
                    bool restore_follows = false);

  // Saves; see SaveLine. When its turn has come, a save takes a cut: AdmitCut, CloseGate (false:
  // again after OpenGate), TakeCut once CutMayBeTaken, OpenGate, Leave. Pushes that wait ask Enter
  // again then.
  SaveLine::Turn AskSave(int64_t now_ns, const muster::RequestContext& context, uint64_t attempt,
                         PsCallId call);
  SaveLine::Turn LookAtSave(PsCallId call) { return saves_.Look(call); }
  absl::Status SaveGoesOn() const { return saves_.GoOn(); }
  void CancelSave(const std::string& why) { saves_.Cancel(why); }
  void EndSave(const SaveLine::Result& result) { saves_.End(result); }
  absl::Status AdmitCut(int64_t now_ns, const muster::RequestContext& context) {
    return admission_.Admit(now_ns, context);
  }
  bool CloseGate() { return gate_.Close(); }
  bool CutMayBeTaken() const { return gate_.quiet(); }
  CutMemory TakeCut() const { return {pushes_.ledger().applied().Ranges(), pushes_.inherited()}; }
  void OpenGate() { gate_.Open(); }

  // `verified`: an earlier call said kVerify, and the files are whole. A restore that has begun has
  // ended the save; INVALID_ARGUMENT for one that keeps the state and has files.
  RestoreTurn BeginRestore(const muster::RequestContext& context, const RestoreAsked& asked,
                           bool verified);
  // What was admitted before has ended.
  bool RestoreMayStart() const { return admission_.idle(); }
  void StartRestore();
  // `memory`: what the files say that the state contains. `clocks`: how many updates it has had. A
  // restore that keeps the state has neither. Returns what to answer: UNAVAILABLE if
  // Configure replaced the state meanwhile.
  absl::StatusOr<muster::RestoreReply> EndRestore(absl::StatusOr<muster::RestoreReply> reply,
                                                  InheritedMemory memory, UpdateClocks clocks = {});

  // Views of checkpoints: of the coordinator that configured the server last, in whatever
  // generation the state is, and whether it serves or not, since they do not change with it.
  // `content`: the same for the same checkpoint. FAILED_PRECONDITION (ERROR_USER) for a view of
  // another one, (ERROR_STALE) for one that was dropped.
  ViewTurn BeginLoadView(const muster::RequestContext& context, uint64_t view,
                         const std::string& content);
  // Before `bytes` are taken, in place of what was reserved for the load before. RESOURCE_EXHAUSTED
  // (ERROR_USER) if the server would hold more than `most` bytes with them and the `used` ones of
  // its state; 0: any.
  absl::Status ReserveView(const ViewTable::Load& load, uint64_t bytes, uint64_t used,
                           uint64_t most);
  // While values are loaded: the error with which the load will end, if that is known already.
  absl::Status MayLoadView(const ViewTable::Load& load) const;
  // OK: the view has the values that were loaded. Otherwise they are nobody's.
  absl::Status EndLoadView(const ViewTable::Load& load, absl::Status loaded);
  absl::Status DropView(const muster::RequestContext& context, uint64_t view);
  // FAILED_PRECONDITION (ERROR_NOT_INSTALLED) without the view.
  absl::Status AdmitViewPull(const muster::RequestContext& context, uint64_t view);
  // That error, for a view without a partition that the server holds.
  absl::Status ViewLacksPartition(uint64_t view) const {
    return ViewLacks(view, "lacks a partition in");
  }
  // Whether its values are kept. Asked after EndConfigure, DropView and the checks of room.
  bool KeepsView(uint64_t view);
  // Before rows are created, beside `used` bytes of the state, of `most`. Training goes before
  // views: where they have the room that it needs, they are given up (*gave_up), and their loads
  // end with ReserveView's error. Without room even so: RESOURCE_EXHAUSTED (ERROR_USER).
  absl::Status CheckRoom(uint64_t used, uint64_t most, bool* gave_up);
  // The same before variables are made, with which the state will have `bytes`.
  absl::Status CheckRoomForVariables(uint64_t bytes, uint64_t most, bool* gave_up);

  // What is.
  uint32_t index() const { return admission_.index(); }
  bool placed() const { return admission_.placed(); }
  uint64_t generation() const { return admission_.generation(); }
  bool gate_closed() const { return gate_.closed(); }
  const PushMemory& pushes() const { return pushes_; }
  size_t contributions() const { return rounds_.kept(); }
  const ViewTable& views() const { return views_; }

 private:
  PushBegun Begin(int64_t now_ns, AdmittedPush push, PsCallId call);
  PushAnswer Acknowledge(int64_t now_ns, bool repeated, const PushCounts& counts) const;
  absl::Status Stale(const PushId& push) const;
  absl::Status Full() const;
  PushBegun Refuse(absl::Status status);
  PushAnswer KeepNow(int64_t now_ns, const PushId& push, uint64_t round, uint32_t most,
                     const absl::Status& checked, RoundBuffer::Gradients gradients);
  // Says how late the push's gradients are. Not OK: too late.
  absl::Status JudgeLateness(AdmittedPush* push) const;
  absl::Status AdmitView(const muster::RequestContext& context);
  // Why a load came to nothing.
  absl::Status Gone(const ViewTable::Load& load) const;
  absl::Status Dropped(uint64_t view) const;
  absl::Status ViewLacks(uint64_t view, absl::string_view what) const;
  // All of them, if they have more than `room` bytes. True: it has.
  bool GiveUpViewsBeyond(uint64_t room);

  Admission admission_;
  PushMemory pushes_;
  RoundBuffer rounds_;
  // Contributions that are being checked, by round, and the calls that wait for the end of it.
  std::map<std::pair<uint64_t, PushId>, std::vector<PsCallId>> checked_;
  UpdateClocks clocks_;
  AssignedPlaces places_;
  CutGate gate_;
  SaveLine saves_;
  ViewTable views_;
  bool dirty_ = false;   // pushes were applied since the last restore
  bool initial_ = true;  // nothing but initial values is lost with the state
  uint64_t configured_epoch_ = 0;
  // What restored the state, if that were files, and nothing has changed it since. A round of
  // recovery that a loss interrupts is followed by another one from the same checkpoint: whoever
  // has loaded it need not do so again.
  std::optional<std::string> loaded_;
  RestoreAsked restoring_;
  bool is_here_ = false;  // what is being restored
  uint64_t restoring_low_water_ = 0;
  muster::RestoreReply restored_;
};

}  // namespace mu
