// Views of checkpoints.
#include <cstdint>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/status.h"
#include "psserver/core/server_core.h"

namespace mu {
namespace {

// As --memory_limit counts them. Rounded to whole ones, what does not fit would seem to.
std::string Megabytes(uint64_t bytes) {
  return absl::StrFormat("%.1f MB", static_cast<double>(bytes) / (1 << 20));
}

}  // namespace

absl::Status ServerCore::AdmitView(const pb::RequestContext& context) {
  MU_RETURN_IF_ERROR(admission_.AdmitView(context));
  views_.TakeEpoch(context.epoch());
  return absl::OkStatus();
}

ViewTurn ServerCore::BeginLoadView(const pb::RequestContext& context, uint64_t view,
                                   const std::string& content) {
  using Step = ViewTurn::Step;
  const auto refuse = [](absl::Status status) {
    return ViewTurn{Step::kRefuse, std::move(status)};
  };
  if (absl::Status refused = AdmitView(context); !refused.ok()) return refuse(std::move(refused));
  if (view == 0) {
    return refuse(admission_.Refuse(absl::StatusCode::kInvalidArgument, pb::ERROR_USER,
                                    "0 is no view: it stands for the current values"));
  }
  ViewTurn turn;
  switch (views_.AskLoad(view, content, &turn.load)) {
    case ViewTable::Ask::kOther:
      return refuse(admission_.Refuse(
          absl::StatusCode::kFailedPrecondition, pb::ERROR_USER,
          absl::StrCat("view ", view,
                       " is of another checkpoint; another view needs a number of "
                       "its own")));
    case ViewTable::Ask::kDropped:
      return refuse(Dropped(view));
    case ViewTable::Ask::kWait:
      turn.step = Step::kWait;
      return turn;
    case ViewTable::Ask::kIsHere:
      turn.step = Step::kAnswer;
      turn.bytes = views_.BytesOf(view);
      return turn;
    case ViewTable::Ask::kLoad:
      break;
  }
  turn.step = Step::kLoad;
  return turn;
}

absl::Status ServerCore::Dropped(uint64_t view) const {
  return admission_.Refuse(absl::StatusCode::kFailedPrecondition, pb::ERROR_STALE,
                           absl::StrCat("view ", view, " was dropped"));
}

absl::Status ServerCore::Gone(const ViewTable::Load& load) const {
  if (!views_.given_up(load)) return Dropped(load.view);
  return admission_.Refuse(
      absl::StatusCode::kResourceExhausted, pb::ERROR_USER,
      absl::StrCat(
          "no room for view ", load.view,
          ": rows of the state need it (--memory_limit); use more servers, or allow more"));
}

absl::Status ServerCore::ReserveView(const ViewTable::Load& load, uint64_t bytes, uint64_t used,
                                     uint64_t most) {
  used += views_.bytes_without(load);
  if (most > 0 && (used > most || bytes > most - used)) {
    return admission_.Refuse(
        absl::StatusCode::kResourceExhausted, pb::ERROR_USER,
        absl::StrCat("no room for view ", load.view, ", which has ", Megabytes(bytes),
                     ": the server holds ", Megabytes(used), " of values and slots, and may hold ",
                     Megabytes(most), " (--memory_limit); use more servers, or allow more"));
  }
  return views_.SetBytes(load, bytes) ? absl::OkStatus() : Gone(load);
}

absl::Status ServerCore::MayLoadView(const ViewTable::Load& load) const {
  return views_.is_loading(load) ? absl::OkStatus() : Gone(load);
}

absl::Status ServerCore::EndLoadView(const ViewTable::Load& load, absl::Status loaded) {
  const bool kept = views_.EndLoad(load, loaded.ok());
  if (!loaded.ok() || kept) return loaded;
  return Gone(load);
}

absl::Status ServerCore::CheckRoom(uint64_t used, uint64_t most, bool* gave_up) {
  if (used >= most) {
    return admission_.Refuse(
        absl::StatusCode::kResourceExhausted, pb::ERROR_USER,
        absl::StrCat("it holds ", Megabytes(used), " of values and slots, and may hold ",
                     Megabytes(most), " (--memory_limit); train with more servers, or allow more"));
  }
  *gave_up = GiveUpViewsBeyond(most - used);
  return absl::OkStatus();
}

absl::Status ServerCore::CheckRoomForVariables(uint64_t bytes, uint64_t most, bool* gave_up) {
  if (bytes > most) {
    return admission_.Refuse(
        absl::StatusCode::kResourceExhausted, pb::ERROR_USER,
        absl::StrCat("with its variables it would hold ", Megabytes(bytes),
                     " of values and slots, and may hold ", Megabytes(most),
                     " (--memory_limit); train with more servers, or allow more"));
  }
  *gave_up = GiveUpViewsBeyond(most - bytes);
  return absl::OkStatus();
}

bool ServerCore::GiveUpViewsBeyond(uint64_t room) {
  if (views_.bytes() <= room) return false;
  views_.GiveUpAll();
  return true;
}

absl::Status ServerCore::DropView(const pb::RequestContext& context, uint64_t view) {
  MU_RETURN_IF_ERROR(AdmitView(context));
  views_.Drop(view);
  return absl::OkStatus();
}

absl::Status ServerCore::AdmitViewPull(const pb::RequestContext& context, uint64_t view) {
  MU_RETURN_IF_ERROR(AdmitView(context));
  return views_.has(view) ? absl::OkStatus() : ViewLacks(view, "has no");
}

absl::Status ServerCore::ViewLacks(uint64_t view, absl::string_view what) const {
  return admission_.Refuse(absl::StatusCode::kFailedPrecondition, pb::ERROR_NOT_INSTALLED,
                           absl::StrCat("it ", what, " view ", view, ": call LoadView"));
}

bool ServerCore::KeepsView(uint64_t view) {
  views_.TakeEpoch(admission_.epoch());
  return views_.has(view);
}

}  // namespace mu
