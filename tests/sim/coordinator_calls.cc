// The simulated coordinator's calls to workers and servers: sent, repeated, given up. And how a new
// coordinator brings the servers to one state.
#include <algorithm>
#include <utility>

#include "common/base/cannot_read.h"
#include "coordinator/core/restore_fault.h"
#include "tests/sim/cluster.h"
#include "tests/sim/coordinator.h"

namespace mu::sim {
namespace {

constexpr int kInstallTries = 2;

CallError MachineError() { return ErrorOf(Code::kMachine); }

// A server cannot read a file.
absl::Status CannotReadOn(uint32_t server) {
  pb::ErrorDetail detail;
  detail.set_role(pb::ROLE_PSSERVER);
  detail.set_index(server);
  return CannotRead(WithDetail(absl::NotFoundError("a file"), detail));
}

}  // namespace

bool Coordinator::NoteEpoch(const Message& reply) {
  if (reply.code != Code::kStale || reply.epoch <= epoch_) return false;
  Step(event::EpochSeen{CoordinatorEpoch(reply.epoch)});
  return true;
}

void Coordinator::Begin(uint32_t index, const Message& request, int tries) {
  // A server is asked for one state at a time.
  const auto same = [](Kind kind) { return kind == Kind::kConfigure ? Kind::kRestore : kind; };
  Drop([&](const Call& call) {
    return call.index == index && same(call.request.kind) == same(request.kind);
  });
  calls_.push_back({index, request, tries});
  Try(&calls_.back());
}

void Coordinator::Try(Call* call) {
  call->id = cluster_->NextCall();
  call->until = now() + kCallTimeout;
  Message& request = call->request;
  const bool to_worker = request.kind == Kind::kInstall || request.kind == Kind::kCancelBelow;
  const Link& link = to_worker ? links_.at(WorkerId(call->index)) : servers_[call->index];
  if (request.kind == Kind::kInstall) {
    request.generation = generation_;
    request.catalog = catalog_;
    request.routing = routing_place_;
    request.bad_functions = bad_functions_;
  }
  Message message = WithContext(request);
  if (request.kind == Kind::kRestore && link.configured != request.generation) {
    // Whoever has the place may be new.
    message = WithContext({.kind = Kind::kConfigure,
                           .steps = static_cast<uint8_t>(expected_servers_),
                           .generation = request.generation});
  }
  if (request.kind == Kind::kFence) {
    message.low_water = request.low_water;
  } else if (beginning_ && !to_worker) {
    message.low_water = 0;  // what a restore is going to repeat is not below the mark
  }
  message.to = link.slot;
  message.server = static_cast<uint8_t>(call->index);
  message.call = call->id;
  cluster_->Send(message);
}

void Coordinator::OnReply(const Message& reply) {
  const auto it = std::find_if(calls_.begin(), calls_.end(),
                               [&](const Call& call) { return call.id == reply.call; });
  // What cannot be reached is tried again when the time is up.
  if (it == calls_.end() || reply.code == Code::kMachine) return;
  const Call call = *it;
  calls_.erase(it);
  if (!NoteEpoch(reply)) Answered(call, &reply);
}

void Coordinator::RepeatCalls() {
  while (!ended_) {
    const auto late = std::find_if(calls_.begin(), calls_.end(),
                                   [&](const Call& call) { return call.until <= now(); });
    if (late == calls_.end()) return;
    if (--late->tries > 0) {
      Try(&*late);
      continue;
    }
    const Call call = *late;
    calls_.erase(late);
    Answered(call, nullptr);
  }
}

void Coordinator::Answered(const Call& call, const Message* reply) {
  const CallError error = reply == nullptr ? MachineError() : CallError();
  switch (call.request.kind) {
    case Kind::kInstall:
      return Installed(call, reply);
    case Kind::kCancelBelow:
      return Step(event::WorkerCancelled{
          WorkerId(call.index), Incarnation(links_.at(WorkerId(call.index)).incarnation), error});
    case Kind::kFence:
      // One that is in another generation refuses all that was cancelled anyway.
      if (!error.ok()) fenced_.failed[call.index] = error;
      return FenceAnswered();
    case Kind::kSave:
      return OnSaved(call.index, reply);
    default:
      return StateAnswered(call, reply);
  }
}

void Coordinator::Do(action::Install& a) {
  if (links_.contains(a.worker)) Begin(a.worker.value(), {.kind = Kind::kInstall}, kInstallTries);
}

void Coordinator::Installed(const Call& call, const Message* reply) {
  const WorkerId worker(call.index);
  const Incarnation incarnation(links_.at(worker).incarnation);
  const uint64_t version = call.request.catalog;
  const Code code = reply == nullptr ? Code::kMachine : reply->code;
  if (code == Code::kRefused) {
    const Fingerprint function(1000 + call.request.bad_functions);
    if (core_.RefusalOf(function).ok()) NoteCancelled();
    Step(event::FunctionRefused{worker, function, absl::InvalidArgumentError("a bad function")});
  } else if (code != Code::kOk) {
    return Step(event::InstallFailed{worker, incarnation, version, ErrorOf(code)});
  }
  Step(event::Installed{worker, incarnation, version});
}

void Coordinator::Do(action::CancelOnWorkers& a) {
  cluster_->Trace(slot_, "cancels what is below function ", a.below.value());
  for (const WorkerId id : a.workers) {
    if (!links_.contains(id)) continue;
    Begin(id.value(),
          {.kind = Kind::kCancelBelow,
           .generation = OnWire(a.generation),
           .function = a.below.value()},
          kTries);
  }
}

void Coordinator::AskAll(std::optional<uint32_t> checkpoint, const std::vector<bool>& keep) {
  for (uint32_t s = 0; s < expected_servers_; ++s) {
    Message request = {.kind = Kind::kConfigure,
                       .steps = static_cast<uint8_t>(expected_servers_),
                       .generation = generation_};
    if (checkpoint.has_value()) {
      request = {.kind = Kind::kRestore,
                 .keep_state = s < keep.size() && keep[s],
                 .generation = generation_,
                 .checkpoint = *checkpoint};
      cluster_->Trace(slot_, request.keep_state ? "keep server " : "restore server ", s,
                      " from checkpoint ", *checkpoint, " in generation ", generation_);
    }
    Begin(s, request, kTries);
  }
}

void Coordinator::Do(action::Restore& a) {
  generation_ = OnWire(newest_ = round_ = a.generation);
  asking_ = Asking::kRound;
  const auto folder = folders_.find(a.checkpoint);
  AskAll(folder == folders_.end() ? 0 : static_cast<uint32_t>(folder->second), a.keep);
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
  After(cluster_->Between(kMillisecond, 20 * kMillisecond), "assigned",
        [=, this, attempt = a.attempt] {
          Step(event::Assigned{attempt, fails ? MachineError() : CallError()});
        });
}

void Coordinator::StateAnswered(const Call& call, const Message* reply) {
  const uint32_t s = call.index;
  const Message& request = call.request;
  if (reply == nullptr || reply->code == Code::kStale) return StateFailed(MachineError().status);
  if (reply->code == Code::kBadFile) return StateFailed(absl::DataLossError("a file is damaged"));
  if (reply->code == Code::kCannotRead) {
    // A look at the files says whose fault it is.
    const auto& checkpoints = cluster_->disk().checkpoints;
    const auto it = checkpoints.find(request.checkpoint);
    const bool good = it != checkpoints.end() && it->second.good();
    return StateFailed(AfterLook(
        CannotReadOn(s), good ? absl::OkStatus() : absl::DataLossError("a file is damaged")));
  }
  if (reply->request == Kind::kConfigure) {
    servers_[s].configured = request.generation;
    if (request.kind == Kind::kRestore) return Begin(s, request, kTries);
  }
  held_[s] = reply->updates;
  if (asking_ == Asking::kRound && !request.keep_state) {
    cluster_->truth().Restored(epoch_, request.generation,
                               cluster_->PartitionsOf(servers_[s].slot));
  }
  const bool all = std::none_of(calls_.begin(), calls_.end(), [](const Call& other) {
    return other.request.kind == Kind::kConfigure || other.request.kind == Kind::kRestore;
  });
  if (all && request.generation == generation_) AllAnswered();
}

void Coordinator::AllAnswered() {
  switch (std::exchange(asking_, Asking::kNothing)) {
    case Asking::kNothing:
      return;
    case Asking::kConfigure:
      return Step(event::Configured{asking_attempt_, {}});
    case Asking::kRound:
      return Step(event::Restored{.generation = round_,
                                  .updates = {held_.begin(), held_.begin() + expected_servers_}});
    case Asking::kLoad:
      return Step(event::Loaded{.attempt = asking_attempt_,
                                .updates = {held_.begin(), held_.begin() + expected_servers_}});
  }
}

void Coordinator::StateFailed(absl::Status status) {
  CallError error = CallError::Of(std::move(status));
  switch (std::exchange(asking_, Asking::kNothing)) {
    case Asking::kNothing:
      return;
    case Asking::kConfigure:
      return Step(event::Configured{asking_attempt_, std::move(error)});
    case Asking::kRound:
      Saw("round fails");
      return Step(event::Restored{.generation = round_, .error = std::move(error)});
    case Asking::kLoad:
      return Step(event::Loaded{.attempt = asking_attempt_, .error = std::move(error)});
  }
}

void Coordinator::Do(action::UseRouting&) {
  Routing routing;
  routing.version = routing_ = ++catalog_;
  routing.epoch = epoch_;
  routing.generation = generation_;
  routing.servers = static_cast<uint8_t>(expected_servers_);
  for (uint32_t s = 0; s < routing.servers; ++s) {
    cluster_->truth().ServerActive(static_cast<uint8_t>(s),
                                   cluster_->IncarnationAt(servers_[s].slot), epoch_, generation_);
    routing.slot[s] = servers_[s].slot;
    routing.incarnation[s] = servers_[s].incarnation;
  }
  routing_place_ = cluster_->AddRouting(routing);
  Step(event::CatalogChanged{catalog_, routing_, newest_, 1});
}

void Coordinator::Do(action::FenceServers& a) {
  fenced_ = {.attempt = a.attempt, .failed = {}};
  for (uint32_t s = 0; s < expected_servers_; ++s) {
    Begin(s,
          {.kind = Kind::kFence, .generation = OnWire(a.generation), .low_water = a.below.value()},
          /*tries=*/1);
  }
}

void Coordinator::FenceAnswered() {
  const bool open = std::any_of(calls_.begin(), calls_.end(),
                                [](const Call& call) { return call.request.kind == Kind::kFence; });
  if (fenced_.attempt != 0 && !open) Step(std::exchange(fenced_, {}));
}

void Coordinator::Continue() {
  begin_from_ = 0;
  for (const auto& [number, checkpoint] : cluster_->disk().checkpoints) {
    if (checkpoint.committed && !checkpoint.damaged) begin_from_ = number;
  }
  if (begin_from_ == 0) return Begun();
  // Its manifest, which has been read when somebody else removes it.
  begin_checkpoint_ = cluster_->disk().checkpoints.at(begin_from_);
  const Checkpoint& from = *begin_checkpoint_;
  auto point = std::make_shared<ResumePoint>();
  point->resumes = true;
  point->job.functions = from.functions;
  point->job.acknowledged = {from.acknowledged.begin(), from.acknowledged.begin() + from.servers};
  for (const pb::DatasetPositionProto& position : from.data) {
    const DataLayout& data = core_.leases(kDataset)->data();
    point->data.push_back({kDataset, position, PlanOf(data, position.epoch())});
  }
  beginning_task_ =
      Ask({.kind = ServerTask::Kind::kLoad, .loaded = from.core_number, .point = std::move(point)});
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
  Continue();
}

}  // namespace mu::sim
