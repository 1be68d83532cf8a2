// What is said to servers: configuring, restoring, loading, assigning, fencing. Calls run on
// threads of their own and end with an event.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/obs/log.h"
#include "coordinator/cluster/checkpoint_manifest.h"
#include "coordinator/cluster/checkpoint_verify.h"
#include "coordinator/cluster/runtime.h"

namespace mu {
namespace {

// What `look` says of a checkpoint's folder, and of no other that has taken its name meanwhile.
template <typename Look>
absl::Status LookAtHeld(const JobCheckpoints::Held& held, const Look& look) {
  while (true) {
    const std::string folder = held.folder();
    const absl::Status seen = look(folder);
    if (!held.IsNotCalled(folder)) return seen;
  }
}

}  // namespace

void Runtime::EnableRecovery(RecoveryMode mode) {
  loop_.Ask([&] {
    loop_.AssertHeld();
    Step(event::EnableRecovery{mode});
  });
}

absl::StatusOr<ServerApi::Call> Runtime::NewRoutingCall(Generation generation) {
  MU_RETURN_IF_ERROR(
      catalog_.Route(options_.epoch, generation, core_.membership().Servers()).status());
  return NewCall(generation);
}

ServerApi::Call Runtime::NewCall(Generation generation) {
  ServerApi::Call call = {ContextNow(), catalog_.routed(), std::make_shared<PsCallGroup>()};
  call.context.set_generation(generation.value());
  calls_to_servers_.insert(call.group);
  return call;
}

void Runtime::EndCall(const ServerApi::Call& call, Event event) {
  loop_.Post([this, group = call.group, event = std::move(event)] {
    loop_.AssertHeld();
    calls_to_servers_.erase(group);
    Step(event);
  });
}

void Runtime::Do(action::InterruptServers&) {
  for (const auto& group : calls_to_servers_) group->Cancel();
}

void Runtime::Do(action::Configure& a) {
  const auto call = NewRoutingCall(a.generation);
  if (!call.ok()) return PostStep(event::Configured{a.attempt, CallError::Of(call.status())});
  work_.Add([this, call = *call, a] {
    const absl::Status status = a.reset ? options_.server_api->Restore(call, {}, {}).status()
                                        : options_.server_api->Configure(call);
    EndCall(call, event::Configured{a.attempt, CallError::Of(status)});
  });
}

void Runtime::Do(action::UseRouting&) {
  catalog_.UseRouting();
  StepCatalogChanged();
}

CallError Runtime::RestoreFrom(const ServerApi::Call& call, const std::string& folder,
                               std::shared_ptr<const pb::TakenValuesProto> take,
                               const std::vector<bool>& keep, std::vector<uint64_t>* updates) {
  ScopedSpan span(options_.telemetry, "restore",
                  absl::StrCat("generation ", call.context.generation(), ", ",
                               folder.empty() ? "initial values" : folder));
  pb::CheckpointProto manifest;
  return CallError::Of([&] {
    if (!folder.empty()) {
      MU_ASSIGN_OR_RETURN(manifest, ReadManifest(folder));
    }
    MU_ASSIGN_OR_RETURN(
        const auto replies,
        options_.server_api->Restore(
            call, {folder, {manifest.files().begin(), manifest.files().end()}, std::move(take)},
            keep));
    for (const pb::RestoreReply& reply : replies) updates->push_back(reply.updates());
    return absl::OkStatus();
  }());
}

void Runtime::Do(action::LookAtFiles& a) {
  event::FilesSeen seen = {.generation = a.generation, .status = {}};
  if (a.task != TaskId()) {
    return work_.Add([this, seen, state = tasks_.at(a.task)]() mutable {
      const auto look = [&](const std::string& folder) {
        return CheckSizes(folder, state->manifest);
      };
      seen.status = state->held != nullptr ? LookAtHeld(*state->held, look) : look(state->folder);
      PostStep(std::move(seen));
    });
  }
  recovery_.Add([this, seen, point = a.point]() mutable {
    const auto held = options_.checkpoints->Hold(point);
    seen.status = held.status();
    if (held.ok()) {
      seen.status = LookAtHeld(**held, [](const std::string& folder) -> absl::Status {
        MU_ASSIGN_OR_RETURN(const pb::CheckpointProto manifest, ReadManifest(folder));
        return CheckSizes(folder, manifest);
      });
    }
    PostStep(std::move(seen));
  });
}

void Runtime::Do(action::CheckpointBad& a) {
  if (a.task != TaskId()) {
    const TaskState& task = *tasks_.at(a.task);
    return options_.checkpoints->NoteBad(task.held != nullptr ? task.held->folder() : task.folder);
  }
  if (const auto folder = options_.checkpoints->Find(a.point); folder.ok())
    options_.checkpoints->NoteBad(*folder);
}

void Runtime::Do(action::Restore& a) {
  event::Restored event = {.generation = a.generation, .from = "initial values"};
  const auto call = NewRoutingCall(a.generation);
  event.error = CallError::Of(call.status());
  if (!call.ok()) return PostStep(std::move(event));
  recovery_.Add([this, call = *call, a, event]() mutable {
    const bool restores = std::find(a.keep.begin(), a.keep.end(), false) != a.keep.end();
    if (!restores || a.checkpoint == kInitialValues) {
      event.error = RestoreFrom(call, "", nullptr, a.keep, &event.updates);
    } else if (const auto held = options_.checkpoints->Hold(a.checkpoint); held.ok()) {
      const std::string folder = event.from = (*held)->folder();
      event.error = RestoreFrom(call, folder, options_.checkpoints->TakenFrom(a.checkpoint), a.keep,
                                &event.updates);
      if ((*held)->IsNotCalled(folder)) event.renamed = folder;
    } else {
      event.error = CallError::Of(held.status());
    }
    if (event.error.ok() && event.renamed.empty() && restores)
      MU_LOG(INFO, "{} restored in generation {}", event.from, event.generation.value());
    EndCall(call, std::move(event));
  });
}

void Runtime::Do(action::Load& a) {
  event::Loaded event = {.attempt = a.attempt};
  const auto call = NewRoutingCall(a.generation);
  if (!call.ok()) {
    event.error = CallError::Of(call.status());
    event.asked = false;
    return PostStep(std::move(event));
  }
  work_.Add([this, call = *call, state = tasks_.at(a.task), point = a.point, event]() mutable {
    const std::string folder = state->held != nullptr ? state->held->folder() : state->folder;
    event.error = RestoreFrom(call, folder, state->take, {}, &event.updates);
    // Servers may go back to it as soon as the core hears of this. It is renamed there, too.
    if (event.error.ok()) options_.checkpoints->Add(point, folder, state->take);
    if (state->held != nullptr && state->held->IsNotCalled(folder)) {
      options_.checkpoints->Remove(point);
      event.renamed = folder;
    }
    EndCall(call, std::move(event));
  });
}

void Runtime::Do(action::CommitRound& a) {
  work_.Add([this, call = NewCall(a.generation), a = std::move(a)] {
    event::RoundCommitted committed = {.attempt = a.attempt};
    auto updates = options_.server_api->CommitRound(call, a.set);
    if (updates.ok()) committed.updates = *std::move(updates);
    committed.error = CallError::Of(updates.status());
    EndCall(call, std::move(committed));
  });
}

void Runtime::Do(action::Assign& a) {
  work_.Add([this, context = ContextNow(), a] {
    ScopedSpan span(options_.telemetry, "assign", a.assignment->variable);
    const absl::Status status = options_.server_api->Assign(context, a.place, *a.assignment);
    PostStep(event::Assigned{a.attempt, CallError::Of(status)});
  });
}

void Runtime::Do(action::FenceServers& a) {
  pb::RequestContext context = ContextNow();
  context.set_generation(a.generation.value());
  context.set_low_water(a.below.value());
  fences_.Add([this, context, attempt = a.attempt, servers = std::move(a.servers)] {
    event::Fenced fenced = {.attempt = attempt, .failed = {}};
    for (auto& [server, status] : options_.server_api->Fence(context, servers))
      fenced.failed[server] = CallError::Of(std::move(status));
    PostStep(std::move(fenced));
  });
}

void Runtime::Do(action::Paused&) { paused_ns_ = NowNs(); }

void Runtime::Do(action::Serving& a) {
  if (!a.back.empty()) counters_.Recovery()->Count(paused_ns_, NowNs());
  if (options_.telemetry->tracing()) {
    options_.telemetry->AddAsyncSpan(
        "recovery", paused_ns_, NowNs(),
        absl::StrCat("of servers, until generation ", a.generation.value()));
  }
  for (const MemberFailure& failure : a.back) {
    MU_LOG(INFO, "server {} is back after {:.3f} s", failure.index, failure.recovered_seconds);
  }
}

}  // namespace mu
