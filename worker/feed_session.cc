#include "worker/feed_session.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/error_kind.h"
#include "common/rpc/status_proto.h"
#include "common/rpc/timer_queue.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "google/protobuf/wire_format_lite.h"

namespace mu {
namespace {

using google::protobuf::internal::WireFormatLite;

// A FeedReply with one RunReply, which is two messages that are merged: `message` and `rest`.
void AppendReply(const Buffer& message, const std::string& rest, std::string* to) {
  google::protobuf::io::StringOutputStream stream(to);
  google::protobuf::io::CodedOutputStream out(&stream);
  out.WriteVarint32(WireFormatLite::MakeTag(pb::FeedReply::kRepliesFieldNumber,
                                            WireFormatLite::WIRETYPE_LENGTH_DELIMITED));
  out.WriteVarint32(static_cast<uint32_t>(message.size() + rest.size()));
  out.WriteRaw(message.data(), static_cast<int>(message.size()));
  out.WriteString(rest);
}

}  // namespace

// A run's call, as the worker's shell holds it.
class FeedSession::Run final : public ServerCall {
 public:
  Run(std::shared_ptr<FeedSession> session, uint64_t run)
      : session_(std::move(session)), run_(run) {}
  ~Run() override { Finish(absl::InternalError("the worker gave a run no end"), {}); }

  bool IsCancelled() const override {
    MutexLock lock(&mutex_);
    return unwanted_;
  }
  void OnCancel(std::function<void()> callback) override {
    {
      MutexLock lock(&mutex_);
      if (finished_) return;
      if (!unwanted_) {
        on_unwanted_ = std::move(callback);
        return;
      }
    }
    callback();
  }
  void Send(Buffer message) override { session_->Say(run_, message, nullptr); }
  void Finish(absl::Status status, Buffer last) override {
    std::function<void()> dropped;
    {
      MutexLock lock(&mutex_);
      if (std::exchange(finished_, true)) return;
      dropped.swap(on_unwanted_);
    }
    session_->Say(run_, last, &status);
  }
  void Unwanted() {
    std::function<void()> callback;
    {
      MutexLock lock(&mutex_);
      unwanted_ = true;
      callback.swap(on_unwanted_);
    }
    if (callback) callback();
  }

 private:
  const std::shared_ptr<FeedSession> session_;
  const uint64_t run_;
  mutable Mutex mutex_;
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
  bool unwanted_ ABSL_GUARDED_BY(mutex_) = false;
  std::function<void()> on_unwanted_ ABSL_GUARDED_BY(mutex_);
};

void FeedSession::Connect(std::shared_ptr<ServerCall> call, const pb::FeedHello& hello,
                          uint64_t received) {
  if (absl::Status confirmed = end_.Confirmed(received); !confirmed.ok())
    return call->Finish(std::move(confirmed));
  const uint64_t connection = hello.connection();
  end_.Connect(connection, {}, /*greets=*/true);
  std::shared_ptr<ServerCall> before;
  {
    MutexLock lock(&mutex_);
    before = std::exchange(call_, call);
    connection_ = connection;
    patience_ = absl::Milliseconds(hello.patience_ms());
  }
  if (before != nullptr)
    before->Finish(absl::AbortedError("a newer connection takes the place of this one"));
  const auto self = shared_from_this();
  call->Converse(
      {[self, connection](Buffer* message) { return self->end_.Next(connection, message); },
       [self, connection](const Buffer& bytes) { self->OnMessage(connection, bytes); }});
  call->OnCancel([weak = weak_from_this(), connection] {
    if (const auto session = weak.lock())
      session->Disconnect(connection, absl::CancelledError("the connection broke"));
  });
  call->Poke();
}

void FeedSession::Disconnect(uint64_t connection, const absl::Status& why) {
  std::shared_ptr<ServerCall> call;
  absl::Duration patience;
  {
    MutexLock lock(&mutex_);
    if (connection_ != connection) return;
    call = std::exchange(call_, nullptr);
    patience = patience_;
  }
  if (call == nullptr) return;
  call->Finish(why);
  if (patience == absl::ZeroDuration()) return;
  TimerQueue::Process().CallAfter(patience, [weak = weak_from_this(), connection] {
    const auto self = weak.lock();
    if (self == nullptr) return;
    {
      MutexLock lock(&self->mutex_);
      if (self->connection_ != connection) return;
    }
    self->Abandon();
  });
}

void FeedSession::End() {
  uint64_t connection;
  {
    MutexLock lock(&mutex_);
    connection = connection_;
  }
  Abandon();
  Disconnect(connection, absl::AbortedError("the coordinator has begun a new stream"));
}

void FeedSession::Abandon() {
  std::vector<std::shared_ptr<Run>> runs;
  {
    MutexLock lock(&mutex_);
    for (const auto& [id, run] : runs_) {
      if (auto held = run.lock()) runs.push_back(std::move(held));
    }
  }
  for (const auto& run : runs) run->Unwanted();
}

void FeedSession::OnMessage(uint64_t connection, const Buffer& bytes) {
  pb::FeedRequest request;
  if (!request.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return Disconnect(connection,
                      absl::InvalidArgumentError("the message does not parse as a FeedRequest"));
  }
  bool over = false;
  {
    MutexLock reading(&reading_);
    const auto verdict =
        end_.Receive(connection, request.number(), request.received(), bytes.size());
    if (!verdict.ok()) return Disconnect(connection, verdict.status());
    if (*verdict == ResumableEnd::Verdict::kBroken)
      return Disconnect(connection, absl::AbortedError("a message is missing"));
    over = *verdict == ResumableEnd::Verdict::kHandle && request.last();
    if (*verdict == ResumableEnd::Verdict::kHandle) Handle(std::move(request));
  }
  if (over) return Disconnect(connection, absl::OkStatus());
  if (end_.wants_to_write()) Poke();
}

void FeedSession::Handle(pb::FeedRequest request) {
  for (pb::FeedLease& lease : *request.mutable_leases()) {
    leases_[lease.id()] = std::make_shared<const pb::LeaseProto>(std::move(*lease.mutable_lease()));
  }
  for (pb::RunRequest& run : *request.mutable_runs()) Start(std::move(run));
  for (const uint64_t id : request.unwanted_runs()) {
    std::shared_ptr<Run> run;
    {
      MutexLock lock(&mutex_);
      if (const auto it = runs_.find(id); it != runs_.end()) run = it->second.lock();
    }
    if (run != nullptr) run->Unwanted();
  }
  for (const uint64_t lease : request.forgotten_leases()) leases_.erase(lease);
  if (request.last()) Abandon();
}

absl::StatusOr<std::shared_ptr<const pb::LeaseProto>> FeedSession::LeaseOf(uint64_t id) const {
  const auto it = leases_.find(id);
  if (it != leases_.end()) return it->second;
  return absl::InternalError(
      absl::StrCat("a run reads lease ", id, ", which its stream has not brought"));
}

absl::StatusOr<RunLeases> FeedSession::LeasesOf(const pb::RunRequest& request) const {
  RunLeases leases;
  for (const pb::RunBatches& range : request.batches()) {
    MU_ASSIGN_OR_RETURN(auto lease, LeaseOf(range.lease()));
    leases.batches.push_back({std::move(lease), range.first_batch(), range.batches()});
  }
  for (const uint64_t id : request.upcoming()) {
    MU_ASSIGN_OR_RETURN(auto lease, LeaseOf(id));
    leases.upcoming.push_back(std::move(lease));
  }
  return leases;
}

void FeedSession::Start(pb::RunRequest request) {
  const auto run = std::make_shared<Run>(shared_from_this(), request.run());
  {
    MutexLock lock(&mutex_);
    runs_[request.run()] = run;
  }
  auto leases = LeasesOf(request);
  if (!leases.ok()) return run->Finish(leases.status(), {});
  start_(run, std::move(request), *std::move(leases));
}

void FeedSession::Say(uint64_t run, const Buffer& message, const absl::Status* end) {
  pb::RunReply rest;
  rest.set_run(run);
  if (end != nullptr) {
    *rest.mutable_end() = ToProto(*end);
    MutexLock lock(&mutex_);
    runs_.erase(run);
  }
  std::string bytes = rest.SerializeAsString();
  end_.Add(message.size() + bytes.size(), [message, bytes = std::move(bytes)](std::string* to) {
    AppendReply(message, bytes, to);
  });
  Poke();
}

void FeedSession::Poke() {
  std::shared_ptr<ServerCall> call;
  {
    MutexLock lock(&mutex_);
    call = call_;
  }
  if (call != nullptr) call->Poke();
}

}  // namespace mu
