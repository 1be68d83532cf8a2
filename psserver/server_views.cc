// Views of checkpoints: LoadView, DropView and pulls of their values.
#include <utility>

#include "common/base/status.h"
#include "common/obs/log.h"
#include "psserver/pull.h"
#include "psserver/server.h"
#include "psserver/trim_heaps.h"

namespace mu {
namespace {

// What a view shows: the same in repeats of a request. Files have their checksums, and the folder
// may have been renamed.
std::string ContentOf(const pb::LoadViewRequest& request) {
  pb::LoadViewRequest what = request;
  what.clear_context();
  what.clear_view();
  what.clear_directory();
  return what.SerializeAsString();
}

}  // namespace

absl::StatusOr<PsServer::View> PsServer::LoadValuesOf(const pb::LoadViewRequest& request,
                                                      const ViewTable::Load& load) {
  ScopedTimer timing(load_view_timer_);
  const WorkProgress::Scope executing(&progress_);
  const auto store = store_.directory();
  const auto reserve = [&](uint64_t bytes) -> absl::Status {
    const uint64_t used = options_.most_values > 0 ? store_.Usage().memory : 0;
    MutexLock lock(&mutex_);
    return core_.ReserveView(load, bytes, used, options_.most_values);
  };
  // Variables take their memory at once, rows while they are loaded.
  MU_RETURN_IF_ERROR(reserve(VariableBytes(*store)));
  MU_ASSIGN_OR_RETURN(View view, WithoutSlots(*store));
  MU_RETURN_IF_ERROR(LoadValues(
      *view, request.directory(), request.files(),
      [&](uint64_t bytes) -> absl::Status {
        options_.at("view");
        return reserve(bytes);
      },
      [&]() -> absl::Status {
        MutexLock lock(&mutex_);
        return core_.MayLoadView(load);
      }));
  return view;
}

absl::StatusOr<pb::LoadViewReply> PsServer::LoadView(const pb::LoadViewRequest& request) {
  const std::string content = ContentOf(request);
  while (true) {
    ViewTurn turn;
    {
      MutexLock lock(&mutex_);
      while (true) {
        turn = core_.BeginLoadView(request.context(), request.view(), content);
        if (turn.step != ViewTurn::Step::kWait) break;
        changed_.Wait(&mutex_);
      }
    }
    if (turn.step == ViewTurn::Step::kRefuse) return turn.status;
    if (turn.step == ViewTurn::Step::kAnswer) {
      pb::LoadViewReply reply;
      reply.set_bytes(turn.bytes);
      return reply;
    }
    auto view = LoadValuesOf(request, turn.load);
    View former;  // freed without the lock
    absl::Status status;
    {
      MutexLock lock(&mutex_);
      status = core_.EndLoadView(turn.load, view.status());
      if (status.ok()) former = std::exchange(views_[request.view()], *view);
      changed_.SignalAll();
    }
    former.reset();
    TrimHeaps();  // small partitions and what the files were read into lie there
    if (!status.ok()) return Detailed(std::move(status));
    MU_LOG(INFO, "loaded view {} of {}", request.view(), request.directory());
  }
}

absl::StatusOr<pb::DropViewReply> PsServer::DropView(const pb::DropViewRequest& request) {
  {
    MutexLock lock(&mutex_);
    MU_RETURN_IF_ERROR(core_.DropView(request.context(), request.view()));
    changed_.SignalAll();
  }
  FreeViews();
  TrimHeaps();
  return pb::DropViewReply();
}

void PsServer::FreeViews() {
  const WorkProgress::Scope executing(&progress_);
  std::vector<View> dropped;
  MutexLock lock(&mutex_);
  std::erase_if(views_, [&](auto& item) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (core_.KeepsView(item.first)) return false;
    dropped.push_back(std::move(item.second));
    return true;
  });
}

absl::StatusOr<Buffer> PsServer::PullView(pb::PullRequest* request,
                                          absl::Span<const char> payload) {
  View view;
  {
    MutexLock lock(&mutex_);
    MU_RETURN_IF_ERROR(core_.AdmitViewPull(request->context(), request->view()));
    view = views_.at(request->view());
  }
  options_.at("view pull");
  CountPull(*request);
  // What this server does not hold either is an error of whoever asks for it.
  if (!HoldsAll(*view, *request) && HoldsAll(*store_.directory(), *request)) {
    MutexLock lock(&mutex_);
    return core_.ViewLacksPartition(request->view());
  }
  request->set_read_only(true);
  auto reply =
      ExecutePull(*view, *request, payload, pb::PullReply(), options_.most_reply_bytes, &compute_);
  if (!reply.ok()) return Detailed(reply.status());
  return reply;
}

}  // namespace mu
