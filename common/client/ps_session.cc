#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/error_kind.h"
#include "common/base/hash.h"
#include "common/base/status.h"
#include "common/client/product_grouping.h"
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

// The transport would say so as well, but as of a machine that is broken.
absl::Status TooLarge(size_t bytes, uint64_t most) {
  return WithKind(
      absl::InvalidArgumentError(absl::StrCat(
          "a step's push to one server would have ", bytes, " bytes, but a message has ", most,
          " at most; use smaller batches, split large variables into more partitions, or start "
          "more servers")),
      pb::ERROR_USER, pb::ROLE_WORKER);
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
  ProductGrouping products;
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

RetryPolicy PsSession::NextPolicy(int64_t multiply_adds, size_t bytes) {
  RetryPolicy policy = client_->policy();
  const absl::Duration more = ComputeTimeout(multiply_adds) + TransferTimeout(bytes);
  policy.call_timeout += more;
  policy.total_timeout += more;
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
  size_t bytes = 0;  // of the server that sends most
  for (size_t s = 0; s < view->channels.size(); ++s)
    bytes = std::max(bytes, grouping.ReplyBytes(s));
  return PullFrom(
      *view, /*multiply_adds=*/0, bytes, [&](size_t s) { return grouping.Needs(s); },
      [&](size_t s) { return grouping.PullFrame(s, &scratch_->pull); },
      [&](size_t s, const Buffer& reply, pb::PullReply* header) {
        return grouping.TakeReply(s, reply, header);
      });
}

absl::Status PsSession::Multiply(absl::Span<const ProductRead> products) {
  if (products.empty()) return absl::OkStatus();
  const auto view = client_->view();
  if (view == nullptr) return NoRouting();
  ProductGrouping& grouping = scratch_->products;
  MU_RETURN_IF_ERROR(grouping.Group(*view->routing, products, options_.products));
  for (size_t call = 0; call < grouping.calls(); ++call) {
    MU_RETURN_IF_ERROR(PullFrom(
        *view, grouping.MultiplyAdds(call), grouping.ReplyBytes(call),
        [&](size_t s) { return grouping.Needs(s, call); },
        [&](size_t s) { return grouping.PullFrame(s, call, &scratch_->pull); },
        [&](size_t s, const Buffer& reply, pb::PullReply* header) {
          return grouping.TakeReply(s, call, reply, header);
        }));
  }
  grouping.Finish();
  return absl::OkStatus();
}

absl::Status PsSession::PullFrom(
    const PsClient::View& view, int64_t multiply_adds, size_t bytes,
    const std::function<bool(size_t server)>& needs,
    const std::function<Buffer(size_t server)>& frame,
    const std::function<absl::Status(size_t server, const Buffer& reply, pb::PullReply* header)>&
        take) {
  scratch_->pull.Clear();
  *scratch_->pull.mutable_context() = options_.context;
  // A view's values are nobody's updates.
  const bool clocks = options_.staleness != nullptr && options_.view == 0;
  scratch_->pull.set_read_only(options_.read_only || options_.view != 0);
  scratch_->pull.set_clocks(clocks);
  scratch_->pull.set_view(options_.view);
  scratch_->servers.clear();
  std::vector<PsCall> calls;
  size_t request_bytes = 0;
  for (size_t s = 0; s < view.channels.size(); ++s) {
    if (!needs(s)) continue;
    calls.push_back({view.routing->servers()[s].index(), view.channels[s], kPull, frame(s)});
    request_bytes = std::max(request_bytes, calls.back().request.size());
    scratch_->servers.push_back(s);
  }
  return group_.Run(std::move(calls), NextPolicy(multiply_adds, bytes + request_bytes),
                    [&](size_t call, const Buffer& reply) {
                      const size_t server = scratch_->servers[call];
                      pb::PullReply header;
                      MU_RETURN_IF_ERROR(take(server, reply, &header));
                      if (clocks)
                        AddUnknown(header.clocks(),
                                   &clocks_[view.routing->servers()[server].index()]);
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
  if (options_.view != 0)
    return absl::FailedPreconditionError(
        "a function that reads a checkpoint's view pushes nothing");
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
  int64_t multiply_adds = 0;  // of the server that has most
  size_t bytes = 0;           // the same
  for (size_t s = 0; s < view->channels.size(); ++s) {
    if (!grouping.Needs(s)) continue;
    if (options_.staleness != nullptr)
      *scratch_->push.mutable_clocks() = clocks_[view->routing->servers()[s].index()];
    calls.push_back({view->routing->servers()[s].index(), view->channels[s], kPush,
                     grouping.PushFrame(s, &scratch_->push)});
    bytes = std::max(bytes, calls.back().request.size());
    scratch_->servers.push_back(s);
    multiply_adds = std::max(multiply_adds, grouping.MultiplyAdds(s));
  }
  if (bytes > client_->most_request_bytes()) return TooLarge(bytes, client_->most_request_bytes());
  bool repeated = !calls.empty();
  std::vector<uint32_t> updates, inherited;
  std::optional<uint32_t> late;
  for (const auto& server : view->routing->servers()) {
    updates.resize(std::max<size_t>(updates.size(), server.index() + 1), 0);
  }
  MU_RETURN_IF_ERROR(group_.Run(
      std::move(calls), NextPolicy(multiply_adds, bytes),
      [&](size_t call, const Buffer& reply) -> absl::Status {
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
