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
                         .generation = OnWire(a.generation),
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

void Coordinator::AskAll(std::optional<uint32_t> checkpoint, const std::vector<bool>& keep) {
  answered_.fill(false);
  for (uint32_t s = 0; s < expected_servers_; ++s) {
    if (!checkpoint.has_value()) {
      BeginCall(s, &servers_[s].state,
                {.kind = Kind::kConfigure,
                 .steps = static_cast<uint8_t>(expected_servers_),
                 .generation = generation_});
      continue;
    }
    const bool keeps = s < keep.size() && keep[s];
    cluster_->Trace(slot_, keeps ? "keep server " : "restore server ", s, " from checkpoint ",
                    *checkpoint, " in generation ", generation_);
    BeginCall(s, &servers_[s].state,
              {.kind = Kind::kRestore,
               .keep_state = keeps,
               .generation = generation_,
               .checkpoint = *checkpoint});
  }
}

void Coordinator::Do(action::Restore& a) {
  generation_ = OnWire(newest_ = a.round.generation);
  asking_ = Asking::kRound;
  round_ = a.round;
  std::vector<bool> keep;
  for (const RestoreRound::Server& server : a.round.servers) keep.push_back(server.keep);
  const auto folder = folders_.find(a.round.checkpoint);
  AskAll(folder == folders_.end() ? 0 : static_cast<uint32_t>(folder->second), keep);
}

void Coordinator::Do(action::Configure& a) {
  generation_ = OnWire(newest_ = a.generation);
  asking_ = Asking::kConfigure;
  asking_attempt_ = a.attempt;
  AskAll(a.reset ? std::optional<uint32_t>(0) : std::nullopt);
}

void Coordinator::Do(action::Load& a) {
  generation_ = OnWire(newest_ = a.generation);
  asking_ = Asking::kLoad;
  asking_attempt_ = a.attempt;
  folders_[a.point] = begin_from_;
  cluster_->Trace(slot_, "continues from checkpoint ", begin_from_);
  AskAll(static_cast<uint32_t>(begin_from_));
}

// What becomes of the value is not simulated; its place among the functions, its repeats and its
// errors are.
void Coordinator::Do(action::Assign& a) {
  const bool fails = cluster_->PerMille(100);
  cluster_->SetTimer(
      slot_, cluster_->Between(kMillisecond, 20 * kMillisecond),
      {.kind = Kind::kAssigned, .code = fails ? Code::kMachine : Code::kOk, .run = a.attempt});
}

void Coordinator::OnAssigned(const Message& timer) {
  Step(event::Assigned{timer.run, timer.code == Code::kOk ? CallError() : MachineError()});
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
    if (request.kind == Kind::kRestore) return BeginCall(s, &server.state, request);
  }
  held_[s] = reply.updates;
  if (asking_ == Asking::kRound && !request.keep_state)
    cluster_->truth().Restored(epoch_, request.generation, cluster_->PartitionsOf(server.slot));
  answered_[s] = true;
  for (uint32_t i = 0; i < expected_servers_; ++i) {
    if (!answered_[i]) return;
  }
  if (request.generation == generation_) AllAnswered();
}

void Coordinator::AllAnswered() {
  switch (std::exchange(asking_, Asking::kNothing)) {
    case Asking::kNothing:
      return;
    case Asking::kConfigure:
      return Step(event::Configured{asking_attempt_, {}});
    case Asking::kRound:
      for (const RestoreRound::Server& restored : round_.servers) {
        Step(event::RestoreDone{restored.index, round_.generation, restored.keep,
                                held_[restored.index], ""});
      }
      return;
    case Asking::kLoad: {
      const Checkpoint& from = *begin_checkpoint_;
      auto resume = std::make_shared<ResumePoint>();
      resume->job.functions = from.functions;
      resume->data.push_back({kDataset, from.data, PlanOf(from.data.epoch())});
      return Step(event::Loaded{
          .attempt = asking_attempt_,
          .updates = {held_.begin(), held_.begin() + expected_servers_},
          .acknowledged = {from.acknowledged.begin(), from.acknowledged.begin() + from.servers},
          .resume = std::move(resume)});
    }
  }
}

void Coordinator::StateFailed(uint32_t s, RestoreFault fault) {
  servers_[s].state.id = 0;
  CallError error = MachineError();
  error.role = pb::ROLE_PSSERVER;
  error.index = s;
  if (fault == RestoreFault::kCheckpoint) error.status = absl::DataLossError("a file is damaged");
  switch (std::exchange(asking_, Asking::kNothing)) {
    case Asking::kNothing:
      return;
    case Asking::kConfigure:
      return Step(event::Configured{asking_attempt_, std::move(error)});
    case Asking::kRound:
      return Step(event::RestoreFailed{s, round_.generation, fault, std::move(error)});
    case Asking::kLoad:
      return Step(
          event::Loaded{.attempt = asking_attempt_, .error = std::move(error), .fault = fault});
  }
}

void Coordinator::Do(action::UseRouting&) {
  Routing routing;
  routing.generation = generation_;
  routing.servers = static_cast<uint8_t>(expected_servers_);
  for (uint32_t s = 0; s < routing.servers; ++s) {
    cluster_->truth().ServerActive(static_cast<uint8_t>(s),
                                   cluster_->IncarnationAt(servers_[s].slot), epoch_, generation_);
    routing.slot[s] = servers_[s].slot;
    routing.incarnation[s] = servers_[s].incarnation;
  }
  ++routing_;
  routing_place_ = cluster_->AddRouting(routing);
  Step(event::CatalogChanged{routing_, routing_, newest_, 1});
}

void Coordinator::Do(action::Serving& a) {
  cluster_->Trace(slot_, "serves in generation ", OnWire(a.generation));
}

void Coordinator::Do(action::FenceServers& a) {
  fence_attempt_ = a.attempt;
  for (uint32_t s = 0; s < expected_servers_; ++s) {
    BeginCall(
        s, &servers_[s].fence,
        {.kind = Kind::kFence, .generation = OnWire(a.generation), .low_water = a.below.value()});
  }
}

void Coordinator::OnFenceReply(uint32_t s, const Message& reply) {
  Call& call = servers_[s].fence;
  if (call.id == 0 || reply.call != call.id || reply.code == Code::kMachine) return;
  if (NoteEpoch(reply)) return;
  // One that is in another generation refuses all that was cancelled anyway.
  call.id = 0;
  CheckFence(/*late=*/false);
}

void Coordinator::CheckFence(bool late) {
  if (fence_attempt_ == 0) return;
  event::Fenced fenced = {.attempt = fence_attempt_, .failed = {}};
  for (uint32_t s = 0; s < expected_servers_; ++s) {
    if (servers_[s].fence.id == 0) continue;
    if (!late) return;
    fenced.failed[s] = MachineError();
    servers_[s].fence.id = 0;
  }
  fence_attempt_ = 0;
  Step(std::move(fenced));
}

void Coordinator::CheckCalls() {
  const Time now = cluster_->now();
  bool fence_late = false;
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
        Step(event::Saved{saving_, s, NoAnswer()});
      }
    }
    fence_late |= server.fence.id != 0 && now >= server.fence.until;
    if (ended_) return;
  }
  CheckFence(fence_late);
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

void Coordinator::Begin() {
  begin_from_ = 0;
  for (const auto& [number, checkpoint] : cluster_->disk().checkpoints) {
    if (checkpoint.committed && !checkpoint.damaged) begin_from_ = number;
  }
  if (begin_from_ == 0) return Begun();
  // Its manifest, which has been read when somebody else removes it.
  begin_checkpoint_ = cluster_->disk().checkpoints.at(begin_from_);
  beginning_task_ = Ask(
      {.kind = ServerTask::Kind::kLoad, .loaded = begin_checkpoint_->core_number, .resumes = true});
}

void Coordinator::Begun() {
  beginning_ = false;
  beginning_task_ = TaskId();
  cluster_->truth().NewEpoch(epoch_, begin_from_ == 0 ? nullptr : &*begin_checkpoint_);
}

void Coordinator::Do(action::TaskDone& a) {
  if (a.task == save_task_) save_task_ = TaskId();
  if (a.task == assign_task_) assign_task_ = TaskId();
  if (a.task != beginning_task_ || ended_) return;
  if (begin_from_ != 0 && a.status.ok()) return Begun();
  // The newest that is good now, perhaps an older one than before.
  Begin();
}

}  // namespace mu::sim
