// Save and Restore.
#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/obs/log.h"
#include "psserver/server.h"
#include "psserver/trim_heaps.h"

namespace mu {
namespace {

// Small states may be copied whole.
constexpr size_t kLeastCopies = 64 << 20;

// What a restore restores: the same in repeats of it.
std::string ContentOf(const pb::RestoreRequest& request) {
  pb::RestoreRequest what = request;
  what.clear_context();
  return what.SerializeAsString();
}

// Null: everything.
const pb::TakenValuesProto* TakenBy(const pb::RestoreRequest& request) {
  return request.has_take() ? &request.take() : nullptr;
}

uint64_t UpdatesOf(const StoreDirectory& store) {
  uint64_t updates = 0;
  for (const auto& [id, variable] : store.variables) {
    for (const auto& partition : variable->partitions)
      updates += partition == nullptr ? 0 : partition->updates();
  }
  for (const auto& [id, table] : store.tables) {
    for (const auto& partition : table->partitions)
      updates += partition == nullptr ? 0 : partition->updates();
  }
  return updates;
}

// A restored clock goes on from the partition that has had most updates. That may be less than it
// was: a running clock counts every push to any of the server's partitions, so ten pushes that
// alternate between two make it 10, and restored it is 5. Nobody compares the two: what was
// computed from values of an older generation is never pushed to this one.
UpdateClocks ClocksOf(const StoreDirectory& store) {
  UpdateClocks clocks;
  const auto set = [&clocks](const ClockKey& key, const auto& partitions) {
    uint64_t updates = 0;
    for (const auto& partition : partitions)
      updates = std::max(updates, partition == nullptr ? 0 : partition->updates());
    clocks.Set(key, updates);
  };
  for (const auto& [id, variable] : store.variables)
    set({PartitionKey::Kind::kVariable, id}, variable->partitions);
  for (const auto& [id, table] : store.tables)
    set({PartitionKey::Kind::kTable, id}, table->partitions);
  return clocks;
}

}  // namespace

absl::StatusOr<pb::SaveReply> PsServer::Save(const pb::SaveRequest& request) {
  using Step = SaveLine::Turn::Step;
  std::shared_ptr<SaveReading> reading;
  {
    MutexLock lock(&mutex_);
    const PsCallId call(++last_call_);
    SaveLine::Turn turn = core_.AskSave(Now(), request.context(), request.attempt(), call);
    while (turn.step == Step::kWait) {
      changed_.Wait(&mutex_);
      turn = core_.LookAtSave(call);
    }
    if (turn.step == Step::kDone) return turn.result;
    reading_ = reading = std::make_shared<SaveReading>([this] {
      MutexLock look(&mutex_);
      return core_.SaveGoesOn();
    });
  }
  absl::StatusOr<pb::SaveReply> result = SaveNow(request, reading.get());
  MutexLock lock(&mutex_);
  reading_.reset();
  core_.EndSave(result);
  changed_.SignalAll();
  return result;
}

absl::StatusOr<std::unique_ptr<StoreCut>> PsServer::TakeCut(const pb::SaveRequest& request,
                                                            CutMemory* memory) {
  {
    MutexLock lock(&mutex_);
    MU_RETURN_IF_ERROR(core_.AdmitCut(Now(), request.context()));
  }
  // Only for the cut: the writer holds its partitions itself, and a restore need not wait for it.
  const UnderWay under_way(this);
  while (true) {
    const auto store = store_.directory();
    MU_ASSIGN_OR_RETURN(std::unique_ptr<StoreCut> cut, StoreCut::Prepare(store, &copies_));
    options_.at("cut");
    ScopedTimer timing(cut_timer_);
    {
      MutexLock lock(&mutex_);
      while (!core_.CloseGate()) changed_.Wait(&mutex_);
      while (!core_.CutMayBeTaken()) changed_.Wait(&mutex_);
    }
    // What was configured meanwhile belongs into the cut as well.
    const bool complete = store_.directory() == store;
    if (complete) cut->Take();
    MutexLock lock(&mutex_);
    if (complete) *memory = core_.TakeCut();
    core_.OpenGate();
    opened_.SignalAll();
    changed_.SignalAll();
    if (complete) return cut;
  }
}

absl::StatusOr<pb::SaveReply> PsServer::SaveNow(const pb::SaveRequest& request,
                                                SaveReading* reading) {
  ScopedTimer timing(save_timer_);
  MU_RETURN_IF_ERROR(Detailed(CheckFileName(request.file())));
  copies_.ClearFailure();
  copies_.set_limit(options_.most_copies > 0
                        ? options_.most_copies
                        : std::max<size_t>(kLeastCopies, store_.Usage().bytes / 4));
  CutMemory memory;
  auto cut = TakeCut(request, &memory);
  if (!cut.ok()) return Detailed(cut.status());
  // A restore ends the cut, too, when the writer hangs in the disk.
  reading->OnEnd([&cut] { (*cut)->End(); });
  const auto read = [&](const std::function<void()>& piece) -> absl::Status {
    copies_.Wrote();  // the piece before
    if (copies_.failed())
      return absl::AbortedError(
          "the save was ended: no memory for copies of what changed meanwhile");
    if (piece == nullptr) return reading->GoOn();
    options_.at("save");
    return reading->Read(piece);
  };
  const auto saved = [&] {
    const WorkProgress::Scope executing(&progress_);
    return SaveCheckpointFile(cut->get(), memory, request.directory(), request.file(), read);
  }();
  reading->End();
  // Copies of rows, freed by now, came from the heaps of the threads that pushed, between what
  // stays: over hours their free pieces would add up.
  cut->reset();
  memory = {};
  TrimHeaps();
  if (!saved.ok()) return Detailed(saved.status());
  pb::SaveReply reply;
  *reply.mutable_file() = saved->file;
  reply.set_updates(saved->updates);
  return reply;
}

void PsServer::EndReading() {
  std::shared_ptr<SaveReading> reading;
  {
    MutexLock lock(&mutex_);
    reading = reading_;
  }
  if (reading != nullptr) reading->End();
}

RestoreTurn PsServer::BeginRestore(const pb::RestoreRequest& request, bool verified) {
  const RestoreAsked asked{request.keep_state(), !request.files().empty(), ContentOf(request)};
  RestoreTurn turn;
  {
    MutexLock lock(&mutex_);
    turn = core_.BeginRestore(request.context(), asked, verified);
    if (turn.step != RestoreTurn::Step::kBegun && turn.step != RestoreTurn::Step::kIsHere)
      return turn;
    while (!core_.RestoreMayStart()) changed_.Wait(&mutex_);
    core_.StartRestore();
  }
  EndReading();
  return turn;
}

absl::StatusOr<pb::RestoreReply> PsServer::LoadState(const pb::RestoreRequest& request,
                                                     InheritedMemory* memory,
                                                     UpdateClocks* clocks) {
  const WorkProgress::Scope executing(&progress_);
  MU_RETURN_IF_ERROR(store_.Reset());
  pb::RestoreReply reply;
  if (request.files().empty()) return reply;
  MU_ASSIGN_OR_RETURN(LoadedCheckpoint loaded,
                      LoadCheckpoint(*store_.directory(), request.directory(), request.files(),
                                     request.context().low_water(), TakenBy(request)));
  *memory = std::move(loaded.memory);
  *clocks = ClocksOf(*store_.directory());
  reply.set_rows(loaded.rows);
  reply.set_updates(loaded.updates);
  return reply;
}

absl::StatusOr<pb::RestoreReply> PsServer::Restore(const pb::RestoreRequest& request) {
  using Step = RestoreTurn::Step;
  ScopedTimer timing(restore_timer_);
  RestoreTurn turn = BeginRestore(request, /*verified=*/false);
  if (turn.step == Step::kVerify) {
    {
      const WorkProgress::Scope executing(&progress_);
      MU_RETURN_IF_ERROR(Detailed(VerifyCheckpointFiles(*store_.directory(), request.directory(),
                                                        request.files(), TakenBy(request))));
    }
    turn = BeginRestore(request, /*verified=*/true);
  }
  if (turn.step == Step::kRefuse) return turn.status;
  if (turn.step == Step::kAnswer) return turn.reply;
  absl::StatusOr<pb::RestoreReply> reply = pb::RestoreReply();
  if (turn.step == Step::kKept) {
    reply->set_updates(UpdatesOf(*store_.directory()));
    return reply;
  }
  InheritedMemory memory;
  UpdateClocks clocks;
  if (turn.step == Step::kIsHere) {
    reply = std::move(turn.reply);
  } else if (request.keep_state()) {
    reply->set_updates(UpdatesOf(*store_.directory()));
    reply->set_rows(store_.Usage().rows);
  } else {
    reply = LoadState(request, &memory, &clocks);
    // The state of before lies in the heaps of the threads that took it: without this each restore
    // may leave another heap with room for a whole state.
    TrimHeaps();
  }
  {
    MutexLock lock(&mutex_);
    reply = core_.EndRestore(std::move(reply), std::move(memory), std::move(clocks));
  }
  if (!reply.ok()) return Detailed(reply.status());
  const bool stays = request.keep_state() || turn.step == Step::kIsHere;
  MU_LOG(INFO, "{} {} rows in generation {}", stays ? "keeps" : "restored", reply->rows(),
         request.context().generation());
  return reply;
}

}  // namespace mu
