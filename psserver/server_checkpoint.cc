// Save and Restore.
#include <malloc.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/obs/log.h"
#include "psserver/server.h"

namespace mu {
namespace {

// Of glibc's allocator. ASan has its own, and then two threads must not be the first to ask glibc's
// at once (a SEGV in mtrim).
void TrimHeaps() {
#ifndef __SANITIZE_ADDRESS__
  ::malloc_trim(0);
#endif
}

// Small states may be copied whole.
constexpr size_t kLeastCopies = 64 << 20;

// What a restore restores: the same in repeats of it.
std::string WhatOf(const pb::RestoreRequest& request) {
  pb::RestoreRequest what = request;
  what.clear_context();
  return what.SerializeAsString();
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

}  // namespace

absl::StatusOr<pb::SaveReply> PsServer::Save(const pb::SaveRequest& request) {
  { MU_ASSIGN_OR_RETURN(const Admission::Ticket ticket, admission_.Admit(request.context())); }
  MU_RETURN_IF_ERROR(Detailed(CheckFileName(request.file())));
  return saves_.Run(request.attempt(), request.context().epoch(),
                    [&](Saves::Job* job) { return SaveNow(request, job); });
}

absl::StatusOr<std::unique_ptr<StoreCut>> PsServer::TakeCut(const pb::SaveRequest& request,
                                                            CutMemory* memory) {
  // Only for the cut: the writer holds its partitions itself, and a restore need not wait for it.
  MU_ASSIGN_OR_RETURN(const Admission::Ticket ticket, admission_.Admit(request.context()));
  while (true) {
    const auto store = store_.directory();
    MU_ASSIGN_OR_RETURN(std::unique_ptr<StoreCut> cut, StoreCut::Prepare(store, &copies_));
    ScopedTimer timing(cut_timer_);
    CutGate::Cut stopped(&gate_);
    // What was configured meanwhile belongs into the cut as well.
    if (store_.directory() != store) continue;
    cut->Take();
    memory->applied = pushes_.Applied();
    memory->inherited = pushes_.inherited();
    return cut;
  }
}

absl::StatusOr<pb::SaveReply> PsServer::SaveNow(const pb::SaveRequest& request, Saves::Job* job) {
  ScopedTimer timing(save_timer_);
  copies_.ClearFailure();
  copies_.set_limit(options_.most_copies > 0
                        ? options_.most_copies
                        : std::max<size_t>(kLeastCopies, store_.Usage().bytes / 4));
  CutMemory memory;
  auto cut = TakeCut(request, &memory);
  if (!cut.ok()) return Detailed(cut.status());
  // A restore ends the cut, too, when the writer hangs in the disk.
  job->OnEndOfReading([&cut] { (*cut)->End(); });
  const auto read = [&](const std::function<void()>& piece) -> absl::Status {
    if (copies_.failed())
      return absl::AbortedError(
          "the save was ended: no memory for copies of what changed meanwhile");
    return piece == nullptr ? job->GoOn() : job->Read(piece);
  };
  const auto saved =
      SaveCheckpointFile(cut->get(), memory, request.directory(), request.file(), read);
  job->EndReading();
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

absl::StatusOr<pb::RestoreReply> PsServer::LoadState(const pb::RestoreRequest& request,
                                                     bool verify) {
  const uint64_t low_water = request.context().low_water();
  MU_RETURN_IF_ERROR(store_.Reset());
  pushes_.Reset(low_water, {});
  {
    MutexLock lock(&places_mutex_);
    places_.Clear();
  }
  dirty_.store(false);
  initial_.store(true);
  pb::RestoreReply reply;
  if (request.files().empty()) return reply;
  initial_.store(false);
  MU_ASSIGN_OR_RETURN(
      LoadedCheckpoint loaded,
      LoadCheckpoint(*store_.directory(), request.directory(), request.files(), low_water, verify));
  pushes_.Reset(low_water, std::move(loaded.memory));
  reply.set_rows(loaded.rows);
  reply.set_updates(loaded.updates);
  return reply;
}

absl::StatusOr<pb::RestoreReply> PsServer::Restore(const pb::RestoreRequest& request) {
  ScopedTimer timing(restore_timer_);
  MU_RETURN_IF_ERROR(admission_.AdmitControl(request.context()));
  if (request.keep_state() && !request.files().empty()) {
    return Detailed(absl::InvalidArgumentError("a restore that keeps the state takes no files"));
  }
  // A state that would be missed is given up only for files that are whole. Otherwise they are read
  // once.
  const bool verified = !request.files().empty() && !initial_.load();
  if (verified) {
    MU_RETURN_IF_ERROR(
        Detailed(VerifyCheckpointFiles(*store_.directory(), request.directory(), request.files())));
  }
  // A late copy of this call ends no save.
  MU_ASSIGN_OR_RETURN(const bool begun,
                      admission_.BeginRestore(request.context(), WhatOf(request), dirty_.load(),
                                              request.keep_state()));
  if (!begun) {
    MutexLock lock(&restore_mutex_);
    if (!request.keep_state()) return restored_;
    pb::RestoreReply reply;
    reply.set_updates(UpdatesOf(*store_.directory()));
    return reply;
  }
  saves_.CancelAndWait("the state is being restored");
  absl::StatusOr<pb::RestoreReply> reply = pb::RestoreReply();
  if (request.keep_state()) {
    pushes_.RaiseLowWater(request.context().low_water());
    reply->set_updates(UpdatesOf(*store_.directory()));
    reply->set_rows(store_.Usage().rows);
  } else {
    reply = LoadState(request, !verified);
    // The state of before lies in the heaps of the threads that took it: without this each restore
    // may leave another heap with room for a whole state.
    TrimHeaps();
  }
  if (reply.ok()) {
    MutexLock lock(&restore_mutex_);
    restored_ = *reply;
  }
  admission_.EndRestore(reply.ok());
  if (!reply.ok()) return Detailed(reply.status());
  MU_LOG(INFO, "{} {} rows in generation {}", request.keep_state() ? "keeps" : "restored",
         reply->rows(), request.context().generation());
  return reply;
}

}  // namespace mu
