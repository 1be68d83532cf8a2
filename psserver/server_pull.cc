// Pulls of the current values, and which thread answers them.
#include <memory>
#include <utility>

#include "common/base/status.h"
#include "common/obs/log.h"
#include "common/rpc/frame.h"
#include "psserver/pull.h"
#include "psserver/push_staleness.h"
#include "psserver/server.h"

namespace mu {
namespace {

int64_t RowsOf(const pb::PullRequest& request) {
  int64_t rows = 0;
  for (const pb::TableKeys& keys : request.tables())
    for (const uint32_t count : keys.counts()) rows += count;
  return rows;
}

}  // namespace

absl::Status PsServer::CheckRoom() {
  if (options_.most_values == 0) return absl::OkStatus();
  // Counting takes each partition's lock: now and then is enough. But nothing is refused or given
  // up by an old count, since a restore or other partitions may need less.
  constexpr uint64_t kEvery = 16;
  const bool due = room_checks_.fetch_add(1, std::memory_order_relaxed) % kEvery == 0;
  const auto needed = [this] {
    MutexLock lock(&mutex_);
    return memory_seen_ + core_.views().bytes();
  };
  if (due || needed() >= options_.most_values) memory_seen_ = store_.Usage().memory;
  bool gave_up = false;
  absl::Status status;
  {
    MutexLock lock(&mutex_);
    status = core_.CheckRoom(memory_seen_, options_.most_values, &gave_up);
  }
  if (gave_up) OnViewsGivenUp("rows");
  return status;
}

absl::Status PsServer::CheckRoomForVariables(uint64_t bytes) {
  if (options_.most_values == 0) return absl::OkStatus();
  bool gave_up = false;
  absl::Status status;
  {
    MutexLock lock(&mutex_);
    status = core_.CheckRoomForVariables(bytes, options_.most_values, &gave_up);
  }
  if (gave_up) OnViewsGivenUp("variables");
  return status;
}

void PsServer::OnViewsGivenUp(const char* needed_by) {
  {
    MutexLock lock(&mutex_);
    changed_.SignalAll();
  }
  MU_LOG(WARN, "views of checkpoints are given up: {} need their memory (--memory_limit)",
         needed_by);
  FreeViews();
}

void PsServer::CountPull(const pb::PullRequest& request) {
  pulls_.fetch_add(1, std::memory_order_relaxed);
  pulled_rows_->Add(RowsOf(request));
}

absl::StatusOr<Buffer> PsServer::Pull(const Buffer& frame) {
  pb::PullRequest request;
  const auto payload = ParseFrame(frame, &request);
  if (!payload.ok()) return Detailed(payload.status());
  return PullNow(&request, *payload);
}

void PsServer::Pull(const Buffer& frame, std::function<bool()> abandoned,
                    std::function<void(absl::StatusOr<Buffer>)> done) {
  pb::PullRequest request;
  const auto payload = ParseFrame(frame, &request);
  if (!payload.ok()) return done(Detailed(payload.status()));
  if (request.products().empty()) return done(PullNow(&request, *payload));
  Compute([this, frame, request = std::make_shared<pb::PullRequest>(std::move(request)),
           payload = *payload, abandoned = std::move(abandoned), done = std::move(done)] {
    if (abandoned()) return done(absl::CancelledError("nobody waits for the products"));
    done(PullNow(request.get(), payload));
  });
}

void PsServer::Compute(std::function<void()> task) {
  compute_.Post([this, came_ns = NowNs(), task = std::move(task)] {
    compute_wait_timer_->Count(came_ns, NowNs());
    task();
  });
}

absl::StatusOr<Buffer> PsServer::PullNow(pb::PullRequest* request, absl::Span<const char> payload) {
  ScopedTimer timing(pull_timer_);
  if (request->view() != 0) return PullView(request, payload);
  pb::PullReply header;
  {
    MutexLock lock(&mutex_);
    MU_RETURN_IF_ERROR(core_.Admit(Now(), request->context()));
    if (request->clocks()) FillClocks(core_, *request, header.mutable_clocks());
  }
  const UnderWay under_way(this);
  CountPull(*request);
  if (!request->tables().empty() && !request->read_only()) MU_RETURN_IF_ERROR(CheckRoom());
  const auto directory = store_.directory();
  auto reply =
      ExecutePull(*directory, *request, payload, header, options_.most_reply_bytes, &compute_);
  if (!reply.ok()) return Detailed(reply.status());
  return reply;
}

}  // namespace mu
