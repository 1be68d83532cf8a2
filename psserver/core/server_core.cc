#include "psserver/core/server_core.h"

#include <algorithm>
#include <utility>

#include "common/base/status.h"

namespace mu {

absl::Status ServerCore::Admit(int64_t now_ns, const pb::RequestContext& context) {
  MU_RETURN_IF_ERROR(admission_.Admit(now_ns, context));
  RaiseLowWater(context.low_water());
  return absl::OkStatus();
}

void ServerCore::RaiseLowWater(uint64_t function) {
  pushes_.RaiseLowWater(function);
  rounds_.DropBelow(function);
}

absl::Status ServerCore::BeginFence(int64_t now_ns, const pb::RequestContext& context) {
  MU_RETURN_IF_ERROR(admission_.AdmitControl(context));
  // Of this generation: one that comes after a restore would refuse what that makes run again.
  MU_RETURN_IF_ERROR(admission_.AdmitFence(now_ns, context));
  RaiseLowWater(context.low_water());
  return absl::OkStatus();
}

absl::StatusOr<bool> ServerCore::BeginConfigure(const pb::RequestContext& context) {
  // A newer coordinator may have been quicker.
  MU_RETURN_IF_ERROR(admission_.AdmitControl(context));
  // A newer coordinator restores all servers; it may have other definitions, or place them on more
  // servers or fewer.
  return context.epoch() > configured_epoch_;
}

void ServerCore::EndConfigure(const pb::RequestContext& context, DefinitionsChange change,
                              bool restore_follows) {
  const bool replaced = change == DefinitionsChange::kReplaced;
  configured_epoch_ = std::max(configured_epoch_, context.epoch());
  admission_.Configured(context, replaced, restore_follows);
  views_.TakeEpoch(admission_.epoch());
  if (change != DefinitionsChange::kNone) {
    // What was added has initial values; the files may have others.
    loaded_.reset();
    views_.PartitionsChanged();
  }
  if (!replaced) return;
  pushes_.Reset(pushes_.ledger().low_water(), {});
  rounds_.Reset();
  clocks_.Reset();
  places_.Clear();
  dirty_ = false;
  initial_ = true;
}

SaveLine::Turn ServerCore::AskSave(int64_t now_ns, const pb::RequestContext& context,
                                   uint64_t attempt, PsCallId call) {
  if (absl::Status refused = admission_.Check(now_ns, context); !refused.ok())
    return {SaveLine::Turn::Step::kDone, std::move(refused)};
  return saves_.Ask(call, attempt, context.epoch());
}

RestoreTurn ServerCore::BeginRestore(const pb::RequestContext& context, const RestoreAsked& asked,
                                     bool verified) {
  using Step = RestoreTurn::Step;
  const auto refuse = [](absl::Status status) {
    return RestoreTurn{Step::kRefuse, std::move(status)};
  };
  if (absl::Status status = admission_.AdmitControl(context); !status.ok())
    return refuse(std::move(status));
  if (asked.keep_state && asked.has_files) {
    return refuse(admission_.Refuse(absl::StatusCode::kInvalidArgument, pb::ERROR_USER,
                                    "a restore that keeps the state takes no files"));
  }
  const auto begin = admission_.CheckRestore(context, asked.content, dirty_, asked.keep_state);
  if (!begin.ok()) return refuse(begin.status());
  if (!*begin) {
    RestoreTurn turn{asked.keep_state ? Step::kKept : Step::kAnswer};
    turn.reply = restored_;
    return turn;
  }
  // A coordinator that goes on after another one may begin with an older mark, below which this
  // state would refuse what is to run again.
  is_here_ = asked.has_files && loaded_ == asked.content &&
             pushes_.ledger().low_water() <= context.low_water();
  if (asked.has_files && !is_here_ && !initial_ && !verified) return {Step::kVerify};
  // Not before: a late copy of a request ends no save.
  saves_.Cancel("the state is being restored");
  admission_.BeginRestore(context, asked.content);
  restoring_ = asked;
  restoring_low_water_ = context.low_water();
  RestoreTurn turn{is_here_ ? Step::kIsHere : Step::kBegun};
  if (is_here_) turn.reply = restored_;
  return turn;
}

void ServerCore::StartRestore() {
  admission_.StartRestore();
  rounds_.Reset();
  if (restoring_.keep_state || is_here_) return pushes_.RaiseLowWater(restoring_low_water_);
  pushes_.Reset(restoring_low_water_, {});
  clocks_.Reset();
  places_.Clear();
  dirty_ = false;
  initial_ = !restoring_.has_files;
  loaded_.reset();
  if (restoring_.has_files) loaded_ = restoring_.content;
}

absl::StatusOr<pb::RestoreReply> ServerCore::EndRestore(absl::StatusOr<pb::RestoreReply> reply,
                                                        InheritedMemory memory,
                                                        UpdateClocks clocks) {
  const bool serves = admission_.EndRestore(reply.ok());
  if (!serves) loaded_.reset();
  if (!serves && reply.ok()) {
    return admission_.Refuse(absl::StatusCode::kUnavailable, pb::ERROR_MACHINE,
                             "its partitions were placed anew while it was restored");
  }
  if (!reply.ok()) return reply;
  if (restoring_.has_files && !is_here_) {
    pushes_.Reset(restoring_low_water_, std::move(memory));
    clocks_ = std::move(clocks);
  }
  restored_ = *reply;
  return reply;
}

}  // namespace mu
