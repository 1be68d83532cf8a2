// Saves and restores of a simulated server.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/cannot_read.h"
#include "common/base/error_kind.h"
#include "psserver/core/file_memory.h"
#include "psserver/core/file_sum.h"
#include "tests/sim/cluster.h"
#include "tests/sim/server.h"

namespace mu::sim {

void Server::AfterFiles(Time delay, const char* name, std::function<void()> run) {
  ++moving_;
  ++moved_;
  After(delay, name, [=, this] { WhenDiskMoves(name, run); });
}

void Server::WhenDiskMoves(const char* name, const std::function<void()>& run) {
  const Time left = cluster_->disk().hangs_until[index_] - now();
  if (left > 0) return After(left, name, [=, this] { WhenDiskMoves(name, run); });
  --moving_;
  run();
}

void Server::Save(PsCallId call, const Message& request, SaveLine::Turn turn) {
  switch (turn.step) {
    case SaveLine::Turn::Step::kDone:
      if (turn.result.ok()) Saw("save shared");
      return cluster_->Reply(request, {.status = turn.result.status()});
    case SaveLine::Turn::Step::kWait:
      Saw("save waits");
      waiting_saves_.emplace_back(call, request);
      return;
    case SaveLine::Turn::Step::kRun:
      break;
  }
  saving_ = request;
  if (absl::Status status = core_.AdmitCut(now(), Context(request)); !status.ok())
    return EndSave(status);
  After(cluster_->Between(0, 5 * kMillisecond), "prepared", [this] { Prepared(); });
}

void Server::Prepared() {
  // One save at a time, so it is open.
  cut_wanted_ = core_.CloseGate();
  if (!core_.CutMayBeTaken()) Saw("cut waits");
}

void Server::TakeCut() {
  auto file = std::make_shared<ServerFile>();
  file->partitions = partitions_;
  const CutMemory memory = core_.TakeCut();
  const WrittenMemory written(&memory);
  written.ForEach([&](const auto& steps) { file->memories.push_back(steps); });
  for (uint32_t p = 0; p < partitions_.size(); ++p) file->inherits[p] = written.NumbersOf(KeyOf(p));
  file_ = std::move(file);
  cut_wanted_ = false;
  core_.OpenGate();
  core_.Leave();
  AfterFiles(cluster_->Between(2 * kMillisecond, 30 * kMillisecond), "written",
             [this] { Written(); });
  for (const Admitted work : std::exchange(at_gate_, {})) Apply(work);
}

void Server::Written() {
  if (absl::Status status = core_.SaveGoesOn(); !status.ok()) {
    Saw("save ended");
    return EndSave(status);
  }
  Disk& disk = cluster_->disk();
  if (disk.full[index_] > 0) {
    --disk.full[index_];
    return EndSave(absl::ResourceExhaustedError("the disk is full"));
  }
  const auto it = disk.checkpoints.find(saving_->checkpoint);
  if (it != disk.checkpoints.end() && !it->second.committed) it->second.files[index_] = file_;
  EndSave(pb::SaveReply());
}

void Server::EndSave(const SaveLine::Result& result) {
  const Message request = *std::exchange(saving_, std::nullopt);
  file_.reset();
  core_.EndSave(result);
  cluster_->Reply(request, {.status = result.status()});
  for (const auto& [call, waiting] : std::exchange(waiting_saves_, {}))
    Save(call, waiting, core_.LookAtSave(call));
}

void Server::Restore(const Message& request, bool verified) {
  const bool has_files = !request.keep_state && request.checkpoint != 0;
  const RestoreAsked asked{request.keep_state, has_files,
                           request.keep_state ? "keep" : absl::StrCat(request.checkpoint)};
  RestoreTurn turn = core_.BeginRestore(Context(request), asked, verified);
  switch (turn.step) {
    case RestoreTurn::Step::kRefuse:
      return cluster_->Reply(request, {.status = turn.status});
    case RestoreTurn::Step::kAnswer:
      Saw("restore repeated");
      return cluster_->Reply(request, {.updates = turn.reply.updates()});
    case RestoreTurn::Step::kKept:
      Saw("restore keeps again");
      return cluster_->Reply(request, {.updates = Updates()});
    case RestoreTurn::Step::kVerify:
      Saw("restore verifies");
      return AfterFiles(cluster_->Between(0, 10 * kMillisecond), "verified",
                        [this, request] { Verified(request); });
    case RestoreTurn::Step::kIsHere:
      Saw("restore is here");
      [[fallthrough]];
    case RestoreTurn::Step::kBegun:
      if (!core_.RestoreMayStart()) Saw("restore waits");
      restoring_ = request;
      is_here_ = turn.step == RestoreTurn::Step::kIsHere;
      loading_ = false;
  }
}

void Server::Verified(const Message& request) {
  if (absl::Status status = CheckFiles(request); !status.ok())
    return cluster_->Reply(request, {.status = status});
  Restore(request, /*verified=*/true);
}

absl::Status Server::CannotSee(const char* why) {
  return CannotRead(
      WithKind(absl::UnavailableError(why), pb::ERROR_MACHINE, pb::ROLE_PSSERVER, index_));
}

absl::Status Server::CheckFiles(const Message& request) {
  uint8_t& unreadable = cluster_->disk().unreadable[index_];
  if (unreadable > 0) {
    --unreadable;
    return CannotSee("the disk is not there");
  }
  const auto it = cluster_->disk().checkpoints.find(request.checkpoint);
  if (it == cluster_->disk().checkpoints.end() || !it->second.committed)
    return CannotSee("somebody has removed the checkpoint");
  for (uint8_t f = 0; f < it->second.servers; ++f) {
    const ServerFile* const file = it->second.files[f].get();
    if (file == nullptr) return absl::DataLossError("the file is not there");
    bool needed = false;
    ForEachHeld([&](uint32_t p, const Partition&) { needed |= file->partitions[p].held; });
    if (!needed) continue;
    if (file->torn) return absl::DataLossError(absl::StrCat("file ", f, " is torn"));
    MU_RETURN_IF_ERROR(CheckFileSum(absl::StrCat("file ", f), file->damage, {}));
  }
  return absl::OkStatus();
}

void Server::Loaded() {
  const Message request = *std::exchange(restoring_, std::nullopt);
  absl::Status status;
  InheritedMemory memory;
  if (!request.keep_state && !is_here_) {
    for (Partition& partition : partitions_) partition = {.held = partition.held};
    if (request.checkpoint != 0) status = Load(request, &memory);
  }
  absl::StatusOr<pb::RestoreReply> loaded = pb::RestoreReply();
  loaded->set_updates(Updates());
  if (!status.ok()) loaded = status;
  UpdateClocks clocks;
  uint32_t most = 0;
  ForEachHeld(
      [&](uint32_t, const Partition& partition) { most = std::max(most, partition.counter); });
  clocks.Set(kClock, most);
  const auto ended = core_.EndRestore(std::move(loaded), std::move(memory), std::move(clocks));
  if (!ended.ok()) Saw("restore fails");
  cluster_->Reply(request, {.status = ended.status(), .updates = Updates()});
}

absl::Status Server::Load(const Message& request, InheritedMemory* memory) {
  MU_RETURN_IF_ERROR(CheckFiles(request));
  const Checkpoint& checkpoint = cluster_->disk().checkpoints.at(request.checkpoint);
  for (uint8_t f = 0; f < checkpoint.servers; ++f) {
    const ServerFile& file = *checkpoint.files[f];
    ReadMemory read(request.low_water, memory);
    for (uint32_t p = 0; p < partitions_.size(); ++p) {
      if (!partitions_[p].held || !file.partitions[p].held) continue;
      partitions_[p] = file.partitions[p];
      MU_RETURN_IF_ERROR(
          read.Inherit(KeyOf(p), file.inherits[p], [&](int64_t number) -> ReadMemory::Steps {
            return file.memories[static_cast<size_t>(number)];
          }));
    }
  }
  return absl::OkStatus();
}

}  // namespace mu::sim
