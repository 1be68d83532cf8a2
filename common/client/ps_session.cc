#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/hash.h"
#include "common/base/status.h"
#include "common/client/ps_client.h"
#include "common/client/step_grouping.h"
#include "proto/psserver.pb.h"

namespace mu {
namespace {

constexpr char kPull[] = "/muster.PsServer/Pull";
constexpr char kPush[] = "/muster.PsServer/Push";

absl::Status NoRouting() {
  return absl::FailedPreconditionError(
      "the routing to the parameter servers is not known here yet");
}

// Adds the clocks of what has none yet: of what a step reads twice, the earlier one counts.
void AddUnknown(const pb::ClocksProto& from, pb::ClocksProto* to) {
  if (to->variables().empty() && to->tables().empty()) {
    *to = from;
    return;
  }
  const auto add = [](const auto& ids, const auto& clocks, auto* to_ids, auto* to_clocks) {
    for (int i = 0; i < std::min(ids.size(), clocks.size()); ++i) {
      if (std::find(to_ids->begin(), to_ids->end(), ids[i]) != to_ids->end()) continue;
      to_ids->Add(ids[i]);
      to_clocks->Add(clocks[i]);
    }
  };
  add(from.variables(), from.variable_clocks(), to->mutable_variables(),
      to->mutable_variable_clocks());
  add(from.tables(), from.table_clocks(), to->mutable_tables(), to->mutable_table_clocks());
}

}  // namespace

// What is reused from step to step.
struct PsSession::Scratch {
  StepGrouping grouping;
  pb::PullRequest pull;
  pb::PushRequest push;
  std::vector<size_t> servers;  // position of each call's server
};

PsSession::PsSession(PsClient* client, PsSessionOptions options)
    : client_(client), options_(std::move(options)), scratch_(std::make_unique<Scratch>()) {}
PsSession::~PsSession() = default;

void PsSession::BeginStep(uint32_t step) {
  step_ = step;
  push_repeated_ = false;
  push_updates_.clear();
  push_inherited_.clear();
  push_late_.reset();
}

void PsSession::BeginFunction(PsSessionOptions options) {
  options_ = std::move(options);
  group_.ResetCancel();
  BeginStep(0);
}

void PsSession::Cancel() { group_.Cancel(); }

RetryPolicy PsSession::NextPolicy() {
  RetryPolicy policy = client_->policy();
  policy.seed = HashCombine(policy.seed, ++calls_);
  return policy;
}

absl::Status PsSession::Pull(absl::Span<const VariableRead> variables,
                             absl::Span<const RowsRead> rows) {
  if (variables.empty() && rows.empty()) return absl::OkStatus();
  const auto view = client_->view();
  if (view == nullptr) return NoRouting();
  StepGrouping& grouping = scratch_->grouping;
  MU_RETURN_IF_ERROR(grouping.GroupReads(*view->routing, variables, rows));
  *scratch_->pull.mutable_context() = options_.context;
  scratch_->pull.set_read_only(options_.read_only);
  scratch_->pull.set_clocks(options_.staleness != nullptr);
  scratch_->servers.clear();
  std::vector<PsCall> calls;
  for (size_t s = 0; s < view->channels.size(); ++s) {
    if (!grouping.Needs(s)) continue;
    calls.push_back({view->routing->servers()[s].index(), view->channels[s], kPull,
                     grouping.PullFrame(s, &scratch_->pull)});
    scratch_->servers.push_back(s);
  }
  return group_.Run(std::move(calls), NextPolicy(), [&](size_t call, const Buffer& reply) {
    const size_t server = scratch_->servers[call];
    pb::PullReply header;
    MU_RETURN_IF_ERROR(grouping.TakeReply(server, reply, &header));
    if (options_.staleness != nullptr)
      AddUnknown(header.clocks(), &clocks_[view->routing->servers()[server].index()]);
    return absl::OkStatus();
  });
}

absl::Status PsSession::Push(absl::Span<const VariableWrite> variables,
                             absl::Span<const RowsWrite> rows) {
  push_repeated_ = false;
  push_updates_.clear();
  push_inherited_.clear();
  push_late_.reset();
  if (options_.read_only)
    return absl::FailedPreconditionError("a read-only function pushes nothing");
  if (variables.empty() && rows.empty()) return absl::OkStatus();
  const auto view = client_->view();
  if (view == nullptr) return NoRouting();
  StepGrouping& grouping = scratch_->grouping;
  MU_RETURN_IF_ERROR(grouping.GroupWrites(*view->routing, variables, rows));
  *scratch_->push.mutable_context() = options_.context;
  scratch_->push.set_function(options_.function);
  if (options_.rate_scale == 1) {
    scratch_->push.clear_rate_scale();
  } else {
    scratch_->push.set_rate_scale(options_.rate_scale);
  }
  scratch_->push.set_job_step(options_.job_step);
  scratch_->push.set_round(options_.round);
  scratch_->push.set_most_contributions(options_.most_contributions);
  if (options_.staleness == nullptr) {
    scratch_->push.clear_staleness();
    scratch_->push.clear_clocks();
  } else {
    *scratch_->push.mutable_staleness() = *options_.staleness;
  }
  scratch_->push.set_step(step_);
  scratch_->servers.clear();
  std::vector<PsCall> calls;
  for (size_t s = 0; s < view->channels.size(); ++s) {
    if (!grouping.Needs(s)) continue;
    if (options_.staleness != nullptr)
      *scratch_->push.mutable_clocks() = clocks_[view->routing->servers()[s].index()];
    calls.push_back({view->routing->servers()[s].index(), view->channels[s], kPush,
                     grouping.PushFrame(s, &scratch_->push)});
    scratch_->servers.push_back(s);
  }
  bool repeated = !calls.empty();
  std::vector<uint32_t> updates, inherited;
  std::optional<uint32_t> late;
  for (const auto& server : view->routing->servers()) {
    updates.resize(std::max<size_t>(updates.size(), server.index() + 1), 0);
  }
  MU_RETURN_IF_ERROR(group_.Run(
      std::move(calls), NextPolicy(), [&](size_t call, const Buffer& reply) -> absl::Status {
        pb::PushReply message;
        if (!message.ParseFromArray(reply.data(), static_cast<int>(reply.size()))) {
          return absl::InternalError("a parameter server's answer to a push does not parse");
        }
        repeated &= message.repeated();
        const uint32_t server = view->routing->servers()[scratch_->servers[call]].index();
        updates[server] = message.updates();
        if (message.has_late()) late = std::max(late.value_or(0), message.late());
        if (message.inherited() > 0) {
          inherited.resize(updates.size());
          inherited[server] = message.inherited();
        }
        return absl::OkStatus();
      }));
  push_repeated_ = repeated;
  push_updates_ = std::move(updates);
  push_inherited_ = std::move(inherited);
  push_late_ = late;
  return absl::OkStatus();
}

}  // namespace mu
