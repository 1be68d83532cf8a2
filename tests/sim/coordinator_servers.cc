// The servers' state: a new coordinator's beginning, recovery, checkpoints.
#include <algorithm>
#include <numeric>

#include "tests/sim/cluster.h"
#include "tests/sim/coordinator.h"

namespace mu::sim {
namespace {

constexpr int kTries = 3;
constexpr size_t kKeep = 3;

}  // namespace

void Coordinator::Superseded() {
  cluster_->Trace(slot_, "a newer coordinator has taken over");
  cluster_->Exit(slot_);
}

void Coordinator::CallServer(uint32_t s, const Message& request) {
  ServerLink& server = servers_[s];
  server.request = request;
  server.tries = 0;
  server.call = cluster_->NextCall();
  server.call_until = cluster_->now() + kCallTimeout;
  // Whoever has the place may be new: it is configured first.
  Message message = WithContext(request);
  if (server.configured != request.generation) {
    message = WithContext({.kind = Kind::kConfigure,
                           .steps = static_cast<uint8_t>(expected_servers_),
                           .generation = request.generation});
  }
  message.to = server.slot;
  message.server = static_cast<uint8_t>(s);
  message.call = server.call;
  // What a restore is going to repeat is not below the mark.
  if (beginning_) message.low_water = 0;
  cluster_->Send(message);
}

void Coordinator::TryBegin() {
  if (begin_round_) return;
  const uint32_t servers = expected_servers_;
  for (uint32_t s = 0; s < servers; ++s) {
    if (servers_[s].incarnation == 0 || !servers_[s].ready) return;
  }
  begin_round_ = true;
  begun_.fill(false);
  ++generation_;
  begin_from_ = 0;
  for (const auto& [number, checkpoint] : cluster_->disk().checkpoints) {
    if (checkpoint.committed && !checkpoint.damaged) begin_from_ = number;
  }
  // Its manifest, which has been read when somebody else removes it.
  begin_checkpoint_.reset();
  if (begin_from_ != 0) begin_checkpoint_ = cluster_->disk().checkpoints.at(begin_from_);
  cluster_->Trace(slot_, "begins from checkpoint ", begin_from_, " in generation ", generation_);
  for (uint32_t s = 0; s < servers; ++s) {
    servers_[s].configured = 0;
    CallServer(s, {.kind = Kind::kRestore,
                   .generation = generation_,
                   .checkpoint = static_cast<uint32_t>(begin_from_)});
  }
}

void Coordinator::Begun() {
  beginning_ = false;
  if (begin_from_ == 0) {
    cluster_->truth().NewEpoch(epoch_, nullptr);
  } else {
    const Checkpoint& checkpoint = *begin_checkpoint_;
    queue_.Resume(CheckpointNumber(begin_from_), checkpoint.functions);
    cluster_->truth().NewEpoch(epoch_, &checkpoint);
    // By other servers, perhaps: only the sum matters.
    ledger_.Continue(0, std::accumulate(checkpoint.acknowledged.begin(),
                                        checkpoint.acknowledged.end(), uint64_t{0}));
    if (!leases_->Resume(checkpoint.data).ok())
      cluster_->truth().Fail("the position of the data does not fit");
  }
  for (uint32_t s = 0; s < expected_servers_; ++s) {
    cluster_->truth().ServerActive(static_cast<uint8_t>(s),
                                   cluster_->IncarnationAt(servers_[s].slot), epoch_, generation_);
    cluster_->Trace(slot_, "server ", s, " acknowledged ", ledger_.acknowledged(s),
                    " updates and holds ", held_[s]);
    ledger_.Restored(s, held_[s]);
  }
  NewRouting();
  Act(recovery_.Start(Generation(generation_), {CheckpointNumber(begin_from_)}));
  Dispatch();
}

void Coordinator::NewRouting() {
  Routing routing;
  routing.generation = generation_;
  routing.servers = static_cast<uint8_t>(expected_servers_);
  for (uint32_t s = 0; s < routing.servers; ++s) {
    routing.slot[s] = servers_[s].slot;
    routing.incarnation[s] = servers_[s].incarnation;
  }
  ++routing_;
  routing_place_ = cluster_->AddRouting(routing);
  queue_.RequireVersion(routing_);
  Install();
}

void Coordinator::Act(const Recovery::Actions& actions) {
  for (const RecoveryAction& action : actions) {
    cluster_->Trace(slot_, ToString(action));
    switch (action.kind) {
      case RecoveryAction::Kind::kPause:
        paused_ = true;
        StopRuns();
        break;
      case RecoveryAction::Kind::kRollBack:
        queue_.RollBack(action.checkpoint);
        break;
      case RecoveryAction::Kind::kRestore:
      case RecoveryAction::Kind::kKeep:
        generation_ = static_cast<uint32_t>(action.generation.value());
        CallServer(action.server, {.kind = Kind::kRestore,
                                   .keep_state = action.kind == RecoveryAction::Kind::kKeep,
                                   .generation = generation_,
                                   .checkpoint = static_cast<uint32_t>(action.checkpoint.value())});
        break;
      case RecoveryAction::Kind::kTakeCheckpoint:
        leave_wanted_ = true;
        TakeCheckpoint();
        break;
      case RecoveryAction::Kind::kLetGo: {
        ServerLink& server = servers_[action.server];
        if (!server.leave) break;
        cluster_->Reply(*server.leave, {});
        membership_.Remove(pb::ROLE_PSSERVER, action.server, Incarnation(server.incarnation));
        server = ServerLink();
        begin_round_ = false;
        Act(commit_.ServerLost(action.server));
        break;
      }
      case RecoveryAction::Kind::kReplace:
        Replace(action.server);
        break;
      case RecoveryAction::Kind::kResume:
        paused_ = false;
        for (uint32_t s = 0; s < expected_servers_; ++s) {
          cluster_->truth().ServerActive(static_cast<uint8_t>(s),
                                         cluster_->IncarnationAt(servers_[s].slot), epoch_,
                                         generation_);
        }
        NewRouting();
        Dispatch();
        break;
      case RecoveryAction::Kind::kGiveUp:
        return cluster_->Exit(slot_);
    }
  }
}

void Coordinator::OnServerReply(uint32_t s, const Message& reply) {
  ServerLink& server = servers_[s];
  if (server.call == 0 || reply.call != server.call) return;
  const Message request = server.request;
  if (reply.code == Code::kMachine) return;  // tried again when the time is up
  server.call = 0;
  if (reply.code == Code::kStale) {
    if (reply.epoch > epoch_) return Superseded();
    return ServerCallFailed(s, Recovery::Failure::kTryAgain);
  }
  if (reply.code == Code::kBadFile) return ServerCallFailed(s, Recovery::Failure::kBadCheckpoint);
  if (reply.code == Code::kCannotRead) {
    // A look at the files says whose fault it is.
    const bool good = cluster_->FilesAreGood(request.checkpoint);
    return ServerCallFailed(
        s, good ? Recovery::Failure::kServerAtFault : Recovery::Failure::kBadCheckpoint);
  }
  if (reply.request == Kind::kConfigure) {
    server.configured = request.generation;
    return CallServer(s, request);
  }
  if (!request.keep_state) {
    if (!beginning_) {
      ledger_.Restored(s, reply.updates);
      cluster_->truth().Restored(epoch_, request.generation, cluster_->PartitionsOf(server.slot));
    } else {
      held_[s] = reply.updates;
    }
  }
  if (!beginning_) {
    server.restored = request.generation;
    return FinishRestores();
  }
  begun_[s] = true;
  for (uint32_t i = 0; i < expected_servers_; ++i) {
    if (!begun_[i]) return;
  }
  if (begin_round_) Begun();
}

// A server that was cut off may serve until its lease runs out: what replaces it waits for that.
void Coordinator::FinishRestores() {
  if (cluster_->now() < leases_out_) return;
  for (uint32_t s = 0; s < expected_servers_; ++s) {
    if (servers_[s].restored == 0) continue;
    Act(recovery_.RestoreDone(s, Generation(std::exchange(servers_[s].restored, 0))));
  }
}

void Coordinator::ServerCallFailed(uint32_t s, Recovery::Failure failure) {
  servers_[s].call = 0;
  if (beginning_) {
    if (failure == Recovery::Failure::kServerAtFault) Replace(s);
    begin_round_ = false;  // the monitor begins again
    return;
  }
  Act(recovery_.RestoreFailed(s, Generation(servers_[s].request.generation), failure));
}

void Coordinator::CheckCalls() {
  for (uint32_t s = 0; s < expected_servers_; ++s) {
    ServerLink& server = servers_[s];
    if (server.call != 0 && cluster_->now() >= server.call_until) {
      if (++server.tries >= kTries) {
        ServerCallFailed(s, Recovery::Failure::kTryAgain);
      } else {
        const int tries = server.tries;
        CallServer(s, Message(server.request));
        server.tries = tries;
      }
    }
    if (server.save_call != 0 && cluster_->now() >= server.save_until) {
      if (++server.save_tries >= kTries) {
        server.save_call = 0;
        Act(commit_.SaveFailed(CheckpointNumber(checkpoint_), s,
                               absl::DeadlineExceededError("no answer")));
      } else {
        SendSave(s);
      }
    }
  }
}

void Coordinator::TakeCheckpoint() {
  // One at a time: the one for a server that leaves follows the one under way.
  if (beginning_ || cancel_ || (paused_ && !leave_wanted_) || commit_.under_way()) return;
  if (queue_.repeats_cancelled()) {
    if (std::exchange(leave_wanted_, false)) Act(recovery_.LeaveCheckpoint(std::nullopt));
    return;
  }
  std::vector<uint32_t> servers;
  for (uint32_t s = 0; s < expected_servers_; ++s) servers.push_back(s);
  auto& checkpoints = cluster_->disk().checkpoints;
  checkpoint_ = ++cluster_->disk().last_checkpoint;
  attempt_ = cluster_->NextCall();
  if (std::exchange(leave_wanted_, false)) leave_checkpoint_ = checkpoint_;
  Checkpoint& checkpoint = checkpoints[checkpoint_];  // the directory, made exclusively
  checkpoint.number = checkpoint_;
  checkpoint.epoch = epoch_;
  checkpoint.servers = static_cast<uint8_t>(servers.size());
  Act(commit_.Begin(CheckpointNumber(checkpoint_), servers));
}

void Coordinator::Act(const CheckpointCommit::Actions& actions) {
  for (const CheckpointAction& action : actions) {
    cluster_->Trace(slot_, ToString(action));
    const uint64_t number = action.checkpoint.value();
    auto& checkpoints = cluster_->disk().checkpoints;
    switch (action.kind) {
      case CheckpointAction::Kind::kTakePosition:
        begun_position_ = queue_.CheckpointPosition();
        for (uint32_t s = 0; s < kMaxServers; ++s)
          manifest_.acknowledged[s] = ledger_.acknowledged(s);
        Act(commit_.PositionTaken(action.checkpoint));
        break;
      case CheckpointAction::Kind::kSave:
        servers_[action.server].save_tries = 0;
        SendSave(action.server);
        break;
      case CheckpointAction::Kind::kWriteManifest:
        manifest_.functions = queue_.AfterCuts(begun_position_);
        manifest_.data = leases_->Position();
        // A disk is slow now and then.
        cluster_->SetTimer(
            slot_,
            cluster_->Between(0,
                              cluster_->Between(0, 9) == 0 ? 300 * kMillisecond : 3 * kMillisecond),
            {.kind = Kind::kManifestDue, .checkpoint = static_cast<uint32_t>(number)});
        break;
      case CheckpointAction::Kind::kCommitted: {
        queue_.CheckpointCommitted(action.checkpoint, begun_position_);
        recovery_.Committed(action.checkpoint);
        std::vector<uint64_t> committed;
        for (const auto& [other, checkpoint] : checkpoints) {
          if (checkpoint.committed) committed.push_back(other);
        }
        for (size_t i = 0; i + kKeep < committed.size(); ++i) checkpoints.erase(committed[i]);
        if (leave_checkpoint_ == number) {
          leave_checkpoint_ = 0;
          Act(recovery_.LeaveCheckpoint(action.checkpoint));
        }
        break;
      }
      case CheckpointAction::Kind::kAborted: {
        const auto it = checkpoints.find(number);
        if (it != checkpoints.end() && !it->second.committed) checkpoints.erase(it);
        for (ServerLink& server : servers_) server.save_call = 0;
        if (leave_checkpoint_ == number) {
          leave_checkpoint_ = 0;
          Act(recovery_.LeaveCheckpoint(std::nullopt));
        }
        break;
      }
    }
  }
}

void Coordinator::SendSave(uint32_t s) {
  ServerLink& server = servers_[s];
  server.save_call = cluster_->NextCall();
  server.save_until = cluster_->now() + kCallTimeout;
  cluster_->Send(WithContext({.kind = Kind::kSave,
                              .to = server.slot,
                              .server = static_cast<uint8_t>(s),
                              .call = server.save_call,
                              .generation = generation_,
                              .checkpoint = static_cast<uint32_t>(checkpoint_),
                              .attempt = attempt_}));
}

void Coordinator::OnSaved(uint32_t s, const Message& reply) {
  ServerLink& server = servers_[s];
  if (server.save_call == 0 || reply.call != server.save_call) return;
  if (reply.code == Code::kMachine) return;  // tried again when the time is up
  server.save_call = 0;
  if (reply.code == Code::kOk) {
    manifest_.updates[s] = reply.updates;
    return Act(commit_.Saved(CheckpointNumber(reply.checkpoint), s));
  }
  if (reply.code == Code::kStale && reply.epoch > epoch_) return Superseded();
  Act(commit_.SaveFailed(CheckpointNumber(checkpoint_), s,
                         absl::ResourceExhaustedError("the disk is full")));
}

void Coordinator::OnManifestDue(const Message& timer) {
  if (!commit_.under_way() || timer.checkpoint != checkpoint_) return;
  Disk& disk = cluster_->disk();
  // Only the current epoch commits.
  if (disk.epoch != epoch_ && !cluster_->scenario().broken.fencing) {
    Act(commit_.Superseded());
    return Superseded();
  }
  const auto it = disk.checkpoints.find(timer.checkpoint);
  if (it == disk.checkpoints.end()) {
    return Act(commit_.ManifestFailed(CheckpointNumber(timer.checkpoint),
                                      absl::NotFoundError("no such directory")));
  }
  it->second.functions = manifest_.functions;
  it->second.data = manifest_.data;
  it->second.updates = manifest_.updates;
  it->second.acknowledged = manifest_.acknowledged;
  it->second.committed = true;
  Act(commit_.ManifestWritten(CheckpointNumber(timer.checkpoint)));
}

}  // namespace mu::sim
