// What is said to servers: configuring, restoring, loading, assigning, fencing. Calls run on
// threads of their own and end with an event.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/cannot_read.h"
#include "common/client/applied_full.h"
#include "common/obs/log.h"
#include "coordinator/cluster/checkpoint_manifest.h"
#include "coordinator/cluster/checkpoint_verify.h"
#include "coordinator/cluster/restore_errors.h"
#include "coordinator/cluster/runtime.h"

namespace mu {

void Runtime::EnableRecovery(RecoveryMode mode) {
  loop_.Ask([&] {
    loop_.AssertHeld();
    Step(event::EnableRecovery{mode});
  });
}

absl::StatusOr<ServerApi::Call> Runtime::NewRoutingCall(Generation generation) {
  MU_RETURN_IF_ERROR(catalog_.Route(options_.epoch, generation, core_.membership().All()).status());
  return NewCall(generation);
}

ServerApi::Call Runtime::NewCall(Generation generation) {
  ServerApi::Call call = {ContextNow(), catalog_.routed(), std::make_shared<PsCallGroup>()};
  call.context.set_generation(generation.value());
  calls_to_servers_.insert(call.group);
  return call;
}

void Runtime::EndCall(const ServerApi::Call& call) { calls_to_servers_.erase(call.group); }

void Runtime::Do(action::InterruptServers&) {
  for (const auto& group : calls_to_servers_) group->Cancel();
}

void Runtime::Do(action::Configure& a) {
  const auto call = NewRoutingCall(a.generation);
  if (!call.ok()) return PostStep(event::Configured{a.attempt, CallError::Of(call.status())});
  work_.Add([this, call = *call, a] {
    absl::Status status;
    if (options_.server_api != nullptr) {
      status = a.reset ? options_.server_api->Restore(call, "", {}, {}).status()
                       : options_.server_api->Configure(call);
    }
    loop_.Post([this, call, a, status] {
      loop_.AssertHeld();
      EndCall(call);
      Step(event::Configured{a.attempt, CallError::Of(status)});
    });
  });
}

void Runtime::Do(action::UseRouting&) {
  catalog_.UseRouting();
  StepCatalogChanged();
}

absl::StatusOr<std::vector<pb::RestoreReply>> Runtime::RestoreFrom(const ServerApi::Call& call,
                                                                   const std::string& folder,
                                                                   const std::vector<bool>& keep) {
  ScopedSpan span(options_.telemetry, "restore",
                  absl::StrCat("generation ", call.context.generation(), ", ",
                               folder.empty() ? "initial values" : folder));
  if (options_.server_api == nullptr)
    return std::vector<pb::RestoreReply>(static_cast<size_t>(call.routing->servers_size()));
  pb::CheckpointProto manifest;
  const auto restored = [&]() -> absl::StatusOr<std::vector<pb::RestoreReply>> {
    if (!folder.empty()) {
      MU_ASSIGN_OR_RETURN(manifest, ReadManifest(folder));
    }
    return options_.server_api->Restore(call, folder,
                                        {manifest.files().begin(), manifest.files().end()}, keep);
  }();
  if (restored.ok()) return restored;
  // The files, as the coordinator sees them, say whose fault it is.
  const absl::Status status = IsCannotRead(restored.status())
                                  ? AfterLook(restored.status(), CheckSizes(folder, manifest))
                                  : restored.status();
  if (IsBadCheckpoint(status) && options_.checkpoints != nullptr)
    options_.checkpoints->NoteBad(folder);
  return status;
}

void Runtime::Do(action::Restore& a) {
  const auto fail = [this, round = a.round](const absl::Status& status) {
    const CallError error = CallError::Of(status);
    const uint32_t server = error.role == pb::ROLE_PSSERVER ? error.index : 0;
    PostStep(event::RestoreFailed{server, round.generation, FaultOf(status), error});
  };
  std::string folder;
  std::vector<bool> keep;
  bool restores = false;
  for (const RestoreRound::Server& server : a.round.servers) {
    keep.push_back(server.keep);
    restores |= !server.keep;
  }
  if (restores && a.round.checkpoint != kInitialValues && options_.checkpoints != nullptr) {
    const auto found = options_.checkpoints->Find(a.round.checkpoint);
    if (!found.ok()) return fail(found.status());
    folder = *found;
  }
  const auto call = NewRoutingCall(a.round.generation);
  if (!call.ok()) return fail(call.status());
  recovery_.Add([this, call = *call, round = a.round, folder, keep, restores, fail] {
    const auto restored = RestoreFrom(call, folder, keep);
    const std::string from = folder.empty() ? "initial values" : folder;
    if (restored.ok() && restores)
      MU_LOG(INFO, "{} restored in generation {}", from, round.generation.value());
    loop_.Post([this, call] {
      loop_.AssertHeld();
      EndCall(call);
    });
    if (!restored.ok()) return fail(restored.status());
    for (size_t i = 0; i < round.servers.size(); ++i) {
      const RestoreRound::Server& server = round.servers[i];
      PostStep(event::RestoreDone{server.index, round.generation, server.keep,
                                  (*restored)[i].updates(), from});
    }
  });
}

void Runtime::Do(action::Load& a) {
  const std::shared_ptr<TaskState> state = tasks_.at(a.task);
  const auto end = [this, a, state](bool asked,
                                    absl::StatusOr<std::vector<pb::RestoreReply>> loaded) {
    loop_.AssertHeld();
    event::Loaded event = {.attempt = a.attempt, .asked = asked};
    if (loaded.ok()) {
      for (const pb::RestoreReply& reply : *loaded) event.updates.push_back(reply.updates());
      if (options_.checkpoints != nullptr) options_.checkpoints->Add(a.point, state->folder);
    } else {
      event.error = CallError::Of(loaded.status());
      event.fault = FaultOf(loaded.status());
    }
    Step(std::move(event));
  };
  const auto call = NewRoutingCall(a.generation);
  if (!call.ok()) return loop_.Post([end, status = call.status()] { end(false, status); });
  work_.Add([this, call = *call, state, end] {
    // What the coordinator sees to be damaged costs no server its state.
    const absl::Status seen = CheckSizes(state->folder, state->manifest);
    const bool asks = options_.server_api == nullptr || !IsBadCheckpoint(seen);
    auto loaded = asks ? RestoreFrom(call, state->folder, {}) : seen;
    loop_.Post([this, call, end, asks, loaded = std::move(loaded)] {
      loop_.AssertHeld();
      EndCall(call);
      end(asks, loaded);
    });
  });
}

void Runtime::Do(action::Assign& a) {
  work_.Add([this, context = ContextNow(), a] {
    absl::Status status;
    if (options_.server_api != nullptr) {
      ScopedSpan span(options_.telemetry, "assign", a.assignment->variable);
      status = options_.server_api->Assign(context, a.place, *a.assignment);
    }
    CallError error = CallError::Of(status);
    error.applied_full = IsAppliedFull(status);
    PostStep(event::Assigned{a.attempt, std::move(error)});
  });
}

void Runtime::Do(action::FenceServers& a) {
  pb::RequestContext context = ContextNow();
  context.set_generation(a.generation.value());
  context.set_low_water(a.below.value());
  fences_.Add([this, context, attempt = a.attempt] {
    event::Fenced fenced = {.attempt = attempt, .failed = {}};
    if (options_.server_api != nullptr) {
      for (auto& [server, status] : options_.server_api->Fence(context))
        fenced.failed[server] = CallError::Of(std::move(status));
    }
    PostStep(std::move(fenced));
  });
}

void Runtime::Do(action::Paused&) { paused_ns_ = NowNs(); }

void Runtime::Do(action::RolledBack& a) {
  MU_LOG(WARN, "{} steps of {} functions since {} will run again", a.back.steps, a.back.functions,
         a.checkpoint == kInitialValues ? "the beginning"
                                        : absl::StrCat("checkpoint ", a.checkpoint.value()));
}

void Runtime::Do(action::Serving& a) {
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
