// Runs of functions on workers: the streams to them, results and ends.
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/error_kind.h"
#include "common/obs/log.h"
#include "common/rpc/status_proto.h"
#include "coordinator/cluster/runtime.h"

namespace mu {
namespace {

// About what a run takes on the stream, without leases.
constexpr size_t kRunBytes = 100;

StepOutcome OutcomeOf(const pb::StepResult& step) {
  StepOutcome outcome = {
      .step = step.step(), .samples = step.samples(), .repeated = step.repeated()};
  outcome.updates.assign(step.updates().begin(), step.updates().end());
  outcome.inherited.assign(step.inherited().begin(), step.inherited().end());
  if (step.has_late()) outcome.late = step.late();
  outcome.refused = step.refused();
  return outcome;
}

}  // namespace

void Runtime::OpenFeed(const std::shared_ptr<WorkerLink>& link) {
  FeedClient::Options options;
  options.channel = link->channel;
  *options.hello.mutable_context() = ContextNow();
  options.hello.set_incarnation(link->member.incarnation.value());
  options.hello.set_stream(++last_feed_);
  // Who has given up waits for nothing any more; a worker that hears so late only works in vain.
  options.hello.set_patience_ms(
      static_cast<uint32_t>(absl::ToInt64Milliseconds(3 * options_.timeout)));
  options.give_up = options_.timeout;
  // Whoever scheduled a function, or brought the result of one, writes what follows. The loop's own
  // thread, which has more to decide, leaves that to another one.
  options.writer = [this](std::function<void()> write) {
    if (!loop_.AfterCallersJob(write)) feed_writer_.Add(std::move(write));
  };
  const std::weak_ptr<WorkerLink> weak = link;
  options.on_reply = [this, weak](const pb::FeedReply& reply) { OnFeedReply(weak, reply); };
  options.on_broken = [this, worker = link->id](const absl::Status& why) {
    MU_LOG(INFO, "the stream to worker {} has broken and is opened again: {}", worker.value(), why);
    counters_.FeedsBroken()->Add();
  };
  options.on_ended = [this, weak, job = expected_.Expect()](const absl::Status& status) {
    job->Post([this, weak, status] {
      loop_.AssertHeld();
      if (const auto ended = weak.lock()) OnFeedEnded(ended, status);
    });
  };
  link->run_requests = std::make_shared<RunRequests>();
  link->feed = FeedClient::Open(std::move(options));
}

void Runtime::Do(action::Start& a) {
  const StartRun& start = a.start;
  const std::shared_ptr<WorkerLink>& link = links_.at(start.worker);
  const FunctionQueue::Function& function = *core_.queue().Find(start.function);
  // A repeat of a finished function has nobody who waits for it.
  if (const auto state = states_.find(start.function); state != states_.end()) {
    state->second->SetBatches(function.batches);
  }
  ++stats_.runs;
  spans_.Started(start, function.work.name);
  link->runs[start.run] = start;
  if (link->feed_ended.has_value()) return PostRunEnded(start, *link->feed_ended);
  if (link->feed == nullptr) OpenFeed(link);
  RunRequests::Run run = {.start = start,
                          .context = ContextNow(),
                          .fingerprint = function.work.fingerprint,
                          .view = function.work.view,
                          .step_offset = function.work.step_offset,
                          .draw_offset = function.work.draw_offset,
                          .most_contributions = core_.queue().rounds().most(),
                          .args = function.work.args,
                          .batches = function.batches,
                          .upcoming = core_.UpcomingLease(function.work.dataset, start.worker)};
  if (absl::Status fits = RunRequests::CheckSize(run, options_.most_run_bytes); !fits.ok())
    return PostRunEnded(start, fits);
  link->feed->Send(kRunBytes, [requests = link->run_requests, run = std::move(run)](
                                  std::string* message) { requests->Append(run, message); });
}

void Runtime::Do(action::StopRun& a) {
  const auto it = links_.find(a.worker);
  if (it == links_.end()) return;
  const auto run = it->second->runs.find(a.run);
  if (run == it->second->runs.end()) return;
  if (it->second->feed != nullptr) {
    it->second->feed->Send(kRunBytes, [run = a.run](std::string* message) {
      pb::FeedRequest part;
      part.add_unwanted_runs(run.value());
      part.AppendToString(message);
    });
  }
  PostRunEnded(run->second, absl::CancelledError("nobody waits for the run any more"));
}

void Runtime::OnFeedReply(const std::weak_ptr<WorkerLink>& link, const pb::FeedReply& reply) {
  auto arrived = std::make_shared<std::vector<Arrived>>();
  for (const std::string& bytes : reply.replies()) {
    Arrived& one = arrived->emplace_back();
    if (!one.reply.ParseFromString(bytes)) one.unreadable = "bytes that are no RunReply";
    for (const pb::StepResult& step : one.reply.steps()) {
      one.outcomes.push_back(OutcomeOf(step));
      auto parsed = FunctionState::Parse(step);
      if (parsed.ok()) {
        one.values.push_back(*std::move(parsed));
      } else {
        one.unreadable =
            absl::StrCat("values that are none (", std::string(parsed.status().message()), ")");
      }
    }
    if (one.reply.has_end()) one.end = FromWire(FromProto(one.reply.end()));
  }
  loop_.Bring([this, link, arrived] {
    loop_.AssertHeld();
    for (Arrived& one : *arrived) {
      const auto held = link.lock();
      if (held == nullptr || held->gone) return;
      Take(*held, &one);
    }
  });
}

void Runtime::Take(WorkerLink& link, Arrived* arrived) {
  const RunId id(arrived->reply.run());
  if (!arrived->unreadable.empty()) {
    return Step(
        event::Unreadable{link.id, link.member.incarnation, id, std::move(arrived->unreadable)});
  }
  const auto run = link.runs.find(id);
  if (run == link.runs.end()) return;  // nobody waits for it any more
  const StartRun start = run->second;
  if (!arrived->outcomes.empty() || arrived->reply.handed_back()) {
    arrived_ = arrived;
    Step(event::Results{.start = start,
                        .steps = std::move(arrived->outcomes),
                        .handed_back = arrived->reply.handed_back()});
    arrived_ = nullptr;
  }
  // Its result may have been the last of the worker, for this coordinator.
  if (arrived->end.has_value() && link.runs.contains(start.run)) OnRunEnded(start, *arrived->end);
}

void Runtime::PostRunEnded(const StartRun& start, const absl::Status& status) {
  const std::shared_ptr<WorkerLink> link = links_.at(start.worker);
  link->runs.erase(start.run);
  PostEnd(start, status);
}

void Runtime::PostEnd(const StartRun& start, const absl::Status& status) {
  expected_.Expect()->Post([this, start, status] {
    loop_.AssertHeld();
    spans_.Ended(start, status);
    Step(event::RunEnded{start, CallError::Of(status)});
  });
}

void Runtime::OnRunEnded(const StartRun& start, const absl::Status& status) {
  if (const auto it = links_.find(start.worker); it != links_.end())
    it->second->runs.erase(start.run);
  spans_.Ended(start, status);
  Step(event::RunEnded{start, CallError::Of(status)});
}

void Runtime::OnFeedEnded(const std::shared_ptr<WorkerLink>& link, const absl::Status& status) {
  link->feed = nullptr;
  if (link->gone) return;
  link->feed_ended = FromWire(
      absl::IsUnimplemented(status)
          ? absl::UnavailableError(absl::StrCat(
                "the worker at ", link->member.address,
                " does not know the stream of runs: it is of an older Muster; start it with the "
                "coordinator's version"))
          : status);
  // What the first one brings about may end the others.
  while (!link->gone && !link->runs.empty()) {
    const StartRun start = link->runs.begin()->second;
    if (absl::IsDataLoss(status)) {
      Step(event::Unreadable{link->id, link->member.incarnation, start.run,
                             std::string(status.message())});
    }
    if (link->runs.contains(start.run)) OnRunEnded(start, *link->feed_ended);
  }
}

}  // namespace mu
