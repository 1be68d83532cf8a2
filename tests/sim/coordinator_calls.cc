// The simulated coordinator's calls to workers and servers: sent, repeated, given up. And how a new
// coordinator brings the servers to one state.
#include <algorithm>
#include <utility>

#include "tests/sim/cluster.h"
#include "tests/sim/coordinator.h"

namespace mu::sim {
namespace {

constexpr int kTries = 3;

const absl::Status& NoAnswer() {
  static const absl::Status status = absl::DeadlineExceededError("no answer");
  return status;
}

CallError MachineError() {
  CallError error;
  error.status = NoAnswer();
  error.kind = pb::ERROR_MACHINE;
  return error;
}

}  // namespace

bool Coordinator::NoteEpoch(const Message& reply) {
  if (reply.code != Code::kStale || reply.epoch <= epoch_) return false;
  Step(event::EpochSeen{CoordinatorEpoch(reply.epoch)});
  return true;
}

void Coordinator::Do(action::Install& a) {
  if (const auto link = links_.find(a.worker); link != links_.end())
    SendInstall(a.worker, &link->second);
}

void Coordinator::SendInstall(WorkerId id, Link* link) {
  link->install_call = cluster_->NextCall();
  link->installing = routing_;
  link->install_until = cluster_->now() + kCallTimeout;
  cluster_->Send(WithContext({.kind = Kind::kInstall,
                              .to = link->slot,
                              .index = static_cast<uint8_t>(id.value()),
                              .call = link->install_call,
                              .generation = generation_,
                              .routing = routing_,
                              .routing_place = routing_place_}));
}

void Coordinator::OnInstalled(const Message& reply) {
  for (auto& [id, link] : links_) {
    if (link.install_call != reply.call) continue;
    link.install_call = 0;
    if (reply.code != Code::kOk) {
      if (!NoteEpoch(reply))
        link.install_call = cluster_->NextCall();  // sent again when time is up
      return;
    }
    return Step(event::Installed{id, Incarnation(link.incarnation), link.installing});
  }
}

void Coordinator::Do(action::CancelOnWorkers& a) {
  cluster_->Trace(slot_, "cancels what is below function ", a.below.value());
  for (const WorkerId id : a.workers) {
    const auto it = links_.find(id);
    if (it == links_.end()) continue;
    it->second.cancel = {.kind = Kind::kCancelBelow,
                         .to = it->second.slot,
                         .index = static_cast<uint8_t>(id.value()),
                         .generation = static_cast<uint32_t>(a.generation.value()),
                         .function = a.below.value()};
    it->second.cancel_tries = 0;
    SendCancel(id, it->second);
  }
}

void Coordinator::SendCancel(WorkerId, Link& link) {
  link.cancel_call = cluster_->NextCall();
  link.cancel_until = cluster_->now() + kCallTimeout;
  Message message = link.cancel;
  message.call = link.cancel_call;
  cluster_->Send(WithContext(message));
}

void Coordinator::OnCancelReply(const Message& reply) {
  if (reply.code == Code::kMachine || NoteEpoch(reply)) return;  // tried again when time is up
  for (auto& [id, link] : links_) {
    if (link.cancel_call != reply.call) continue;
    link.cancel_call = 0;
    return Step(event::WorkerCancelled{id, Incarnation(link.incarnation), {}});
  }
}

void Coordinator::BeginCall(uint32_t s, Call* call, const Message& request) {
  call->request = request;
  call->tries = 0;
  CallServer(s, call);
}

void Coordinator::CallServer(uint32_t s, Call* call) {
  ServerLink& server = servers_[s];
  call->id = cluster_->NextCall();
  call->until = cluster_->now() + kCallTimeout;
  // Whoever has the place may be new: it is configured first.
  Message message = WithContext(call->request);
  if (message.kind == Kind::kRestore && server.configured != message.generation) {
    message = WithContext({.kind = Kind::kConfigure,
                           .steps = static_cast<uint8_t>(expected_servers_),
                           .generation = call->request.generation});
  }
  if (message.kind == Kind::kFence) message.low_water = call->request.low_water;
  // What a restore is going to repeat is not below the mark.
  if (message.kind != Kind::kFence && beginning_) message.low_water = 0;
  message.to = server.slot;
  message.server = static_cast<uint8_t>(s);
  message.call = call->id;
  cluster_->Send(message);
}

void Coordinator::Do(action::Restore& a) {
  generation_ = static_cast<uint32_t>(a.round.generation.value());
  answered_.fill(false);
  round_ = a.round;
  for (const RestoreRound::Server& server : a.round.servers) {
    cluster_->Trace(slot_, server.keep ? "keep server " : "restore server ", server.index,
                    " from checkpoint ", a.round.checkpoint.value(), " in generation ",
                    generation_);
    BeginCall(server.index, &servers_[server.index].state,
              {.kind = Kind::kRestore,
               .keep_state = server.keep,
               .generation = generation_,
               .checkpoint = static_cast<uint32_t>(a.round.checkpoint.value())});
  }
}

void Coordinator::OnStateReply(uint32_t s, const Message& reply) {
  ServerLink& server = servers_[s];
  if (server.state.id == 0 || reply.call != server.state.id) return;
  const Message request = server.state.request;
  if (reply.code == Code::kMachine) return;  // tried again when the time is up
  server.state.id = 0;
  if (NoteEpoch(reply)) return;
  if (reply.code == Code::kStale) return StateFailed(s, RestoreFault::kTryAgain);
  if (reply.code == Code::kBadFile) return StateFailed(s, RestoreFault::kCheckpoint);
  if (reply.code == Code::kCannotRead) {
    // A look at the files says whose fault it is.
    return StateFailed(s, cluster_->FilesAreGood(request.checkpoint) ? RestoreFault::kServer
                                                                     : RestoreFault::kCheckpoint);
  }
  if (reply.request == Kind::kConfigure) {
    server.configured = request.generation;
    return BeginCall(s, &server.state, request);
  }
  held_[s] = reply.updates;
  if (!request.keep_state && !beginning_)
    cluster_->truth().Restored(epoch_, request.generation, cluster_->PartitionsOf(server.slot));
  answered_[s] = true;
  for (uint32_t i = 0; i < expected_servers_; ++i) {
    if (!answered_[i]) return;
  }
  if (!round_.has_value() || round_->generation.value() != request.generation) return;
  const RestoreRound round = *std::exchange(round_, std::nullopt);
  if (beginning_) return Begun();
  for (const RestoreRound::Server& restored : round.servers)
    Step(event::RestoreDone{restored.index, round.generation, restored.keep, held_[restored.index],
                            ""});
}

void Coordinator::StateFailed(uint32_t s, RestoreFault fault) {
  const bool current = round_.has_value();
  round_.reset();
  servers_[s].state.id = 0;
  if (beginning_ && fault == RestoreFault::kServer)
    return Step(event::ServerCannotRead{core_.servers_lost(), s, NoAnswer()});
  if (beginning_ || !current) return;  // the monitor begins again
  CallError error = MachineError();
  if (fault == RestoreFault::kCheckpoint) error.status = absl::DataLossError("a file is damaged");
  Step(event::RestoreFailed{s, Generation(servers_[s].state.request.generation), fault,
                            std::move(error)});
}

void Coordinator::Do(action::Serving& a) {
  for (uint32_t s = 0; s < expected_servers_; ++s) {
    cluster_->truth().ServerActive(static_cast<uint8_t>(s),
                                   cluster_->IncarnationAt(servers_[s].slot), epoch_,
                                   static_cast<uint32_t>(a.generation.value()));
  }
  cluster_->Trace(slot_, "serves in generation ", a.generation.value());
  NewRouting();
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
  Step(event::CatalogChanged{routing_, routing_, Generation(generation_)});
}

void Coordinator::Do(action::FenceServers& a) {
  fence_attempt_ = a.attempt;
  fence_broken_ = false;
  for (uint32_t s = 0; s < expected_servers_; ++s) {
    BeginCall(s, &servers_[s].fence,
              {.kind = Kind::kFence,
               .generation = static_cast<uint32_t>(a.generation.value()),
               .low_water = a.below.value()});
  }
}

void Coordinator::OnFenceReply(uint32_t s, const Message& reply) {
  Call& call = servers_[s].fence;
  if (call.id == 0 || reply.call != call.id || reply.code == Code::kMachine) return;
  if (NoteEpoch(reply)) return;
  // One that is in another generation refuses all that was cancelled anyway.
  call.id = 0;
  for (uint32_t i = 0; i < expected_servers_; ++i) {
    if (servers_[i].fence.id != 0 || servers_[i].incarnation == 0) return;
  }
  Fenced(absl::OkStatus());
}

void Coordinator::Fenced(const absl::Status& status) {
  for (ServerLink& server : servers_) server.fence.id = 0;
  const uint64_t attempt = std::exchange(fence_attempt_, 0);
  if (attempt == 0) return;
  Step(event::Fenced{attempt, status.ok() ? CallError() : MachineError()});
}

void Coordinator::CheckCalls() {
  const Time now = cluster_->now();
  bool fence_late = fence_attempt_ != 0 && fence_broken_;
  for (uint32_t s = 0; s < expected_servers_; ++s) {
    ServerLink& server = servers_[s];
    if (server.state.id != 0 && now >= server.state.until) {
      if (++server.state.tries < kTries) {
        CallServer(s, &server.state);
      } else {
        StateFailed(s, RestoreFault::kTryAgain);
      }
    }
    if (server.save.id != 0 && now >= server.save.until) {
      if (++server.save.tries < kTries) {
        CallServer(s, &server.save);
      } else {
        server.save.id = 0;
        Step(event::Saved{CheckpointNumber(checkpoint_), s, NoAnswer()});
      }
    }
    fence_late |= fence_attempt_ != 0 &&
                  (server.incarnation == 0 || (server.fence.id != 0 && now >= server.fence.until));
    if (ended_) return;
  }
  if (fence_late) Fenced(NoAnswer());
  std::vector<std::pair<WorkerId, Incarnation>> silent;
  for (auto& [id, link] : links_) {
    if (link.install_call != 0 && now >= link.install_until) SendInstall(id, &link);
    if (link.cancel_call == 0 || now < link.cancel_until) continue;
    if (++link.cancel_tries < kTries) {
      SendCancel(id, link);
    } else {
      silent.push_back({id, Incarnation(link.incarnation)});
    }
  }
  for (const auto& [id, incarnation] : silent)
    Step(event::WorkerCancelled{id, incarnation, MachineError()});
}

void Coordinator::TryBegin() {
  if (round_.has_value() || core_.membership().Count(pb::ROLE_PSSERVER) < expected_servers_) return;
  ++generation_;
  begin_from_ = 0;
  for (const auto& [number, checkpoint] : cluster_->disk().checkpoints) {
    if (checkpoint.committed && !checkpoint.damaged) begin_from_ = number;
  }
  // Its manifest, which has been read when somebody else removes it.
  begin_checkpoint_.reset();
  if (begin_from_ != 0) begin_checkpoint_ = cluster_->disk().checkpoints.at(begin_from_);
  cluster_->Trace(slot_, "begins from checkpoint ", begin_from_, " in generation ", generation_);
  action::Restore restore;
  restore.round.generation = Generation(generation_);
  restore.round.checkpoint = CheckpointNumber(begin_from_);
  for (uint32_t s = 0; s < expected_servers_; ++s) {
    servers_[s].configured = 0;
    restore.round.servers.push_back({s, false});
  }
  Do(restore);
}

void Coordinator::Begun() {
  beginning_ = false;
  Actions actions;
  const absl::Time now = absl::UnixEpoch() + absl::Nanoseconds(cluster_->now());
  if (begin_from_ == 0) {
    cluster_->truth().NewEpoch(epoch_, nullptr);
  } else {
    const Checkpoint& checkpoint = *begin_checkpoint_;
    cluster_->truth().NewEpoch(epoch_, &checkpoint);
    const CheckpointNumber point(begin_from_);
    const auto& known = checkpoint.acknowledged;
    if (!core_
             .StateLoaded(now, core_.servers_lost(), Generation(generation_), point, FunctionId(1),
                          {held_.begin(), held_.begin() + expected_servers_},
                          {known.begin(), known.begin() + checkpoint.servers}, &actions)
             .ok())
      cluster_->truth().Fail("a new coordinator does not take its servers' state");
    if (!core_.leases(1)->Resume(checkpoint.data).ok())
      cluster_->truth().Fail("the position of the data does not fit");
    core_.Resume(now, point, {.functions = checkpoint.functions}, {1}, &actions);
  }
  for (Action& action : actions) std::visit([this](auto& a) { Do(a); }, action);
  action::Serving serving = {.generation = Generation(generation_)};
  Do(serving);
  Step(event::ServersConfigured{Generation(generation_)});
}

}  // namespace mu::sim
