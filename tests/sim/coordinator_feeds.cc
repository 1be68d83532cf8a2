// The coordinator's ends of the streams to workers.
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/error_kind.h"
#include "tests/sim/cluster.h"
#include "tests/sim/coordinator.h"

namespace mu::sim {
namespace {

constexpr FeedPolicy kFeedPolicy = {.give_up = absl::Nanoseconds(kLease),
                                    .first_backoff = absl::Nanoseconds(kMillisecond),
                                    .longest_backoff = absl::Nanoseconds(10 * kMillisecond)};

}  // namespace

Coordinator::Stream* Coordinator::FindFeed(WorkerId worker, uint32_t stream) {
  const auto it = feeds_.find(worker);
  return it != feeds_.end() && it->second.stream == stream ? &it->second : nullptr;
}

Coordinator::Stream& Coordinator::FeedTo(WorkerId worker) {
  if (const auto known = feeds_.find(worker); known != feeds_.end()) return known->second;
  const Place place = PlaceOf(pb::ROLE_WORKER, worker.value());
  Stream opened = {.slot = place.slot,
                   .incarnation = place.incarnation,
                   .stream = ++last_stream_,
                   .retries = FeedRetries(kFeedPolicy, At(now()))};
  Stream& feed = feeds_.emplace(worker, std::move(opened)).first->second;
  Connect(worker, feed.stream);
  return feed;
}

void Coordinator::Connect(WorkerId worker, uint32_t stream) {
  Stream* const feed = FindFeed(worker, stream);
  if (feed == nullptr || feed->open || !feed->ended.ok()) return;
  if (feed->connection != 0) Saw("stream reopened");
  feed->connection = cluster_->NextCall();
  feed->open = true;
  feed->end.Reconnect();
  cluster_->Send(WithContext({.kind = Kind::kFeedOpen,
                              .to = feed->slot,
                              .stream = feed->stream,
                              .connection = feed->connection,
                              .received = feed->end.received(),
                              .meant = feed->incarnation}));
  WriteAll(*feed);
  if (feed->retries.Connected()) CountSilence(worker, stream);
}

void Coordinator::CountSilence(WorkerId worker, uint32_t stream) {
  const Stream* const counted = FindFeed(worker, stream);
  After(absl::ToInt64Nanoseconds(counted->retries.count_interval()), "", [this, worker, stream] {
    Stream* const feed = FindFeed(worker, stream);
    if (feed == nullptr || !feed->ended.ok()) return;
    const FeedRetries::Silence silence = feed->retries.CountSilence(At(now()));
    if (silence == FeedRetries::Silence::kGoesOn) CountSilence(worker, stream);
    if (silence == FeedRetries::Silence::kGivenUp)
      EndFeed(worker, absl::UnavailableError("the stream could not be opened"));
  });
}

void Coordinator::Say(Stream& feed, Message message) {
  feed.end.Add(std::move(message), 1);
  WriteAll(feed);
}

void Coordinator::WriteAll(Stream& feed) {
  if (!feed.open) return;
  while (const auto* const next = feed.end.Write()) {
    Message message = next->message;
    message.to = feed.slot;
    message.stream = feed.stream;
    message.connection = feed.connection;
    message.number = next->number;
    message.received = feed.end.Confirm();
    cluster_->Send(std::move(message));
  }
}

void Coordinator::OnFeed(const Message& message) {
  const WorkerId worker(IndexOf(message.from));
  Stream* const feed = FindFeed(worker, message.stream);
  if (feed == nullptr || !feed->ended.ok() || !feed->open || feed->connection != message.connection)
    return;
  if (message.kind == Kind::kFeedWelcome && !message.status.ok())
    return OnFeedBroken(worker, message.connection, message.status);
  feed->retries.Answered(/*is_new=*/false);
  if (const absl::Status confirmed = feed->end.Confirmed(message.received); !confirmed.ok())
    return cluster_->truth().Fail(std::string(confirmed.message()));
  if (message.number == 0) return;
  using Arrival = ResumableStream<Message>::Arrival;
  switch (feed->end.Receive(message.number, 1)) {
    case Arrival::kNew:
      feed->retries.Answered(/*is_new=*/true);
      return TakeFeed(worker, *feed, message);
    case Arrival::kRepeat:
      return Saw("message repeated");
    case Arrival::kGap:
      return cluster_->truth().Fail(absl::StrCat("the stream of worker ", worker.value(),
                                                 " lost a message to the coordinator"));
  }
}

void Coordinator::TakeFeed(WorkerId worker, Stream& feed, const Message& message) {
  if (message.kind == Kind::kStepResult && message.status.ok() &&
      !feed.steps.insert({message.run, message.step}).second) {
    return cluster_->truth().Fail(absl::StrCat("the result of step ", message.step, " of run ",
                                               message.run, " comes twice on one stream"));
  }
  const auto run = feed.runs.find(RunId(message.run));
  if (run == feed.runs.end()) return;  // nobody waits for it any more
  const StartRun start = run->second;
  if (message.kind == Kind::kStepResult) return OnStepResult(start, message);
  feed.runs.erase(run);
  const bool users = !message.status.ok() && KindOf(message.status) == pb::ERROR_USER;
  if (users && !IsInGroup(start.function)) {
    user_errors_[std::string(message.status.message())] = start;
    if (core_.cancelling()) Saw("second error dropped");
    if (!feed.runs.empty() && feed.runs.begin()->first < start.run)
      Saw("error waits for earlier runs");
  }
  if (message.handed_back) {
    Step(event::Results{.start = start, .handed_back = true});
    if (FindFeed(worker, message.stream) == nullptr) return;
  }
  Step(event::RunEnded{start, CallError::Of(message.status)});
}

void Coordinator::OnFeedBroken(WorkerId worker, uint32_t connection, const absl::Status& why) {
  const auto it = feeds_.find(worker);
  if (it == feeds_.end() || !it->second.open || it->second.connection != connection) return;
  Stream& feed = it->second;
  feed.open = false;
  const std::optional<absl::Duration> delay = feed.retries.Broken(why, At(now()));
  if (!delay.has_value()) return EndFeed(worker, why);
  After(absl::ToInt64Nanoseconds(*delay), "opens its stream again",
        [this, worker, stream = feed.stream] { Connect(worker, stream); });
}

void Coordinator::EndFeed(WorkerId worker, const absl::Status& status) {
  Stream& feed = feeds_.at(worker);
  feed.open = false;
  feed.ended = FromWire(status);
  const uint32_t stream = feed.stream;
  // What the first one brings about may end the others.
  for (Stream* left = &feed; left != nullptr && !left->runs.empty();
       left = FindFeed(worker, stream)) {
    const StartRun start = left->runs.extract(left->runs.begin()).mapped();
    Step(event::RunEnded{start, CallError::Of(left->ended)});
    if (ended()) return;
  }
}

void Coordinator::DropFeed(WorkerId worker) {
  auto feed = feeds_.extract(worker);
  if (feed.empty()) return;
  Stream& dropped = feed.mapped();
  // Nobody waits for what is left of its runs.
  Say(dropped, WithContext({.kind = Kind::kCancelRun}));
  for (const auto& [run, start] : dropped.runs)
    Step(event::RunEnded{start, CallError::Of(absl::CancelledError("the worker is lost"))});
}

}  // namespace mu::sim
