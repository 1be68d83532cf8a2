// Scheduling, results and errors; membership and installation are in runtime_members.cc.
#include "coordinator/cluster/runtime.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/obs/log.h"
#include "common/rpc/typed.h"

namespace mu {

Runtime::Runtime(Options options)
    : options_(std::move(options)),
      started_(absl::Now()),
      membership_({options_.servers, options_.heartbeat, options_.timeout}),
      queue_(options_.in_flight, [this](uint64_t dataset, WorkerId worker, uint32_t steps)
                                     ABSL_NO_THREAD_SAFETY_ANALYSIS {  // called under Dispatch's lock
        return TakeBatches(dataset, worker, steps);
      }) {}

absl::StatusOr<std::unique_ptr<Runtime>> Runtime::Start(Options options) {
  std::unique_ptr<Runtime> runtime(new Runtime(std::move(options)));
  MU_ASSIGN_OR_RETURN(runtime->server_,
                      runtime->options_.transport->Listen(runtime->options_.listen, runtime->Methods()));
  runtime->monitor_ = std::thread([r = runtime.get()] { r->Monitor(); });
  runtime->recoverer_ = std::thread([r = runtime.get()] { r->Recoverer(); });
  return runtime;
}

void Runtime::Close() {
  MutexLock lock(&mutex_);
  stopping_ = true;
  for (FunctionId id : queue_.CancelAll()) {
    FinishFunction(id, absl::CancelledError("the coordinator is being destroyed"));
  }
  for (auto& [id, link] : links_) {
    link->gone = true;
    for (auto& [run, call] : link->runs) call->Cancel();
    if (link->install_call != nullptr) link->install_call->Cancel();
    old_links_.push_back(link);
  }
  links_.clear();
  if (hooks_.interrupt != nullptr) hooks_.interrupt();
  for (auto& [server, calls] : leaving_) {
    for (const auto& call : calls) call->Finish(absl::OkStatus(), Buffer(pb::LeaveReply().SerializeAsString()));
  }
  leaving_.clear();
  changed_.SignalAll();
}

Runtime::~Runtime() {
  Close();
  if (monitor_.joinable()) monitor_.join();
  if (recoverer_.joinable()) recoverer_.join();
  if (server_ != nullptr) server_->Shutdown();
  std::vector<std::shared_ptr<WorkerLink>> links;
  {
    MutexLock lock(&mutex_);
    links.swap(old_links_);
    while (streams_ > 0) changed_.Wait(&mutex_);
  }
  for (auto& link : links) {
    if (link->installer.joinable()) link->installer.join();
  }
}

double Runtime::SecondsUp() const { return absl::ToDoubleSeconds(absl::Now() - started_); }

pb::RequestContext Runtime::ContextLocked() const {
  pb::RequestContext context;
  context.set_job(options_.job.value());
  context.set_epoch(options_.epoch.value());
  context.set_generation(catalog_.routing().generation());
  context.set_low_water(queue_.low_water().value());
  return context;
}

pb::RequestContext Runtime::Context() const {
  MutexLock lock(&mutex_);
  return ContextLocked();
}

std::shared_ptr<PendingError> Runtime::UnseenError() {
  while (cancelling_ && !stopping_) changed_.Wait(&mutex_);
  if (error_ == nullptr) return nullptr;
  MutexLock lock(&error_->mutex);
  return error_->reported ? nullptr : error_;
}

RemoteValue Runtime::Schedule(FunctionWork work, std::vector<std::string> return_names,
                              std::optional<std::string> user_state) {
  MutexLock lock(&mutex_);
  while (true) {
    if (auto error = UnseenError()) return RemoteValue(error);
    if (!fatal_.ok() || stopping_) {
      auto error = std::make_shared<PendingError>();
      error->status = stopping_ ? absl::CancelledError("the coordinator is being destroyed") : fatal_;
      return RemoteValue(error);
    }
    if (queue_.queued() < options_.queue_bound) break;
    changed_.Wait(&mutex_);
  }
  auto state = std::make_shared<FunctionState>(std::move(return_names), work.steps, work.dataset);
  // Whatever it uses was installed by now; a worker that has all of the catalog has that.
  work.needs_version = catalog_.version();
  if (work.updates && work.dataset != 0 && !per_worker_.contains(work.dataset)) trained_on_.insert(work.dataset);
  if (user_state.has_value()) user_state_ = *std::move(user_state);
  if (!recovery_enabled_) queue_.ForgetKept();
  const FunctionId id = queue_.Schedule(std::move(work));
  states_[id] = state;
  Dispatch();
  return RemoteValue(id, std::move(state));
}

absl::Status Runtime::Join() {
  MutexLock lock(&mutex_);
  while (!stopping_) {
    if (auto error = UnseenError()) {
      MutexLock error_lock(&error->mutex);
      error->reported = true;
      return error->status;
    }
    if (!fatal_.ok()) return fatal_;
    if (queue_.unfinished() == 0 && !recovery_.may_roll_back()) return absl::OkStatus();
    changed_.Wait(&mutex_);
  }
  return absl::CancelledError("the coordinator is being destroyed");
}

absl::StatusOr<bool> Runtime::Done() {
  MutexLock lock(&mutex_);
  if (cancelling_) return false;
  if (auto error = UnseenError()) {
    MutexLock error_lock(&error->mutex);
    error->reported = true;
    return error->status;
  }
  if (!fatal_.ok()) return fatal_;
  return queue_.unfinished() == 0 && !recovery_.may_roll_back();
}

RemoteValue Runtime::Refuse(absl::Status error) {
  MutexLock lock(&mutex_);
  if (auto earlier = UnseenError()) return RemoteValue(earlier);
  error_ = std::make_shared<PendingError>();
  error_->status = std::move(error);
  return RemoteValue(error_);
}

void Runtime::CancelEverything() {
  MutexLock lock(&mutex_);
  BeginCancel(absl::OkStatus());
  while (cancelling_ && !stopping_) changed_.Wait(&mutex_);
}

void Runtime::Fail(absl::Status error) {
  MutexLock lock(&mutex_);
  FailLocked(std::move(error));
}

void Runtime::FailLocked(absl::Status error) {
  if (!fatal_.ok() || stopping_) return;
  MU_LOG(ERROR, "{}", error);
  fatal_ = error;
  for (FunctionId id : queue_.CancelAll()) FinishFunction(id, error);
  changed_.SignalAll();
}

void Runtime::FinishFunction(FunctionId id, absl::Status status) {
  lost_runs_.erase(id);
  const auto it = states_.find(id);
  if (it == states_.end()) return;
  if (status.ok()) ++stats_.functions;
  it->second->Finish(std::move(status));
  states_.erase(it);
  changed_.SignalAll();
}

void Runtime::Dispatch() {
  if (stopping_ || cancelling_ || !fatal_.ok()) return;
  if (recovery_enabled_ && recovery_.started() && !recovery_.serving()) return;
  std::vector<FunctionId> completed;
  for (const StartRun& start : queue_.Dispatch(&completed)) StartOn(start);
  absl::Status out_of_data;
  for (FunctionId id : completed) {
    const absl::Status status = CompletedWithoutRun(id);
    out_of_data.Update(status);
    FinishFunction(id, status);
  }
  changed_.SignalAll();  // places in the queue may be free
  if (!out_of_data.ok()) BeginCancel(std::move(out_of_data));
}

void Runtime::StartOn(const StartRun& start) {
  WorkerLink& link = *links_.at(start.worker);
  const FunctionQueue::Function& function = *queue_.Find(start.function);
  pb::RunRequest request;
  *request.mutable_context() = ContextLocked();
  request.set_function(start.function.value());
  request.set_fingerprint(function.work.fingerprint.value());
  request.set_first_step(start.first_step);
  request.set_steps(start.steps);
  request.set_run(start.run.value());
  request.set_after(start.after.value());
  request.set_step_offset(function.work.step_offset);
  for (const auto& range : function.batches) *request.add_batches() = range;
  // A repeat of a finished function has nobody who waits for it.
  if (const auto state = states_.find(start.function); state != states_.end()) {
    state->second->SetBatches(function.batches);
  }
  if (function.work.args != nullptr) {
    for (const auto& arg : *function.work.args) *request.add_args() = arg;
  }
  for (const auto& lease : UpcomingLeases(function.work.dataset, start.worker)) *request.add_upcoming() = lease;
  if (link.runs.empty()) link.last_news = absl::Now();
  ++streams_;
  link.runs[start.run] = link.channel->ServerStream(
      "/muster.Worker/Run", Buffer(request.SerializeAsString()), {.timeout = absl::InfiniteDuration()},
      [this, start](Buffer message) { OnRunReply(start, message); },
      [this, start](absl::Status status) { OnRunEnded(start, status); });
}

void Runtime::OnRunReply(const StartRun& start, const Buffer& message) {
  pb::RunReply reply;
  std::vector<FunctionResult::Step> parsed;
  std::string unreadable;
  if (!reply.ParseFromArray(message.data(), static_cast<int>(message.size()))) {
    unreadable = "bytes that are no RunReply";
  }
  for (const pb::StepResult& step : reply.steps()) {
    if (!unreadable.empty()) break;
    auto values = FunctionState::Parse(step);
    if (values.ok()) {
      parsed.push_back(*std::move(values));
    } else {
      unreadable = absl::StrCat("values that are none (", std::string(values.status().message()), ")");
    }
  }
  MutexLock lock(&mutex_);
  if (!unreadable.empty()) return Unreadable(start, unreadable);
  if (const auto it = links_.find(start.worker); it != links_.end() && it->second->runs.contains(start.run)) {
    if (reply.handed_back()) {
      queue_.WorkerDrains(start.worker);
      it->second->handed_back.insert(start.run);
    }
    const absl::Time now = absl::Now();
    if (reply.steps_size() > 0) {
      queue_.StepsTook(start.worker, start.function,
                       absl::ToDoubleSeconds(now - std::exchange(it->second->last_news, now)) / reply.steps_size());
    }
  }
  for (int i = 0; i < reply.steps_size(); ++i) {
    const pb::StepResult& step = reply.steps(i);
    bool current = false;
    const bool delivered = queue_.StepDone(start.function, start.run, step.step(), step.samples(), &current);
    CountResult(start, step, current, delivered);
    if (!delivered) continue;
    const auto state = states_.find(start.function);
    if (state == states_.end()) continue;
    state->second->AddStep(step, std::move(parsed[static_cast<size_t>(i)]));
    stats_.steps += 1;
    stats_.samples += step.samples();
    stats_.bad_records += step.bad_records();
    if (stats_.first_bad_record.empty()) stats_.first_bad_record = step.bad_record_message();
    if (const auto link = links_.find(start.worker); link != links_.end()) ++link->second->steps_done;
  }
}

void Runtime::OnRunEnded(const StartRun& start, const absl::Status& status) {
  MutexLock lock(&mutex_);
  --streams_;
  std::shared_ptr<WorkerLink> link;
  if (const auto it = links_.find(start.worker); it != links_.end()) {
    // Forget the call only if this is the link that made it: an index may have a new incarnation by now.
    if (it->second->runs.erase(start.run) > 0) link = it->second;
  }
  changed_.SignalAll();
  if (link == nullptr) return RunOver(start, status, link);
  // A worker executes its runs in order, but their ends may overtake each other on the way: an error waits for those of
  // earlier runs, so that the first one is reported.
  auto& errors = link->early_errors;
  if (!status.ok() && KindOf(status) == pb::ERROR_USER) {
    errors[start.run] = {start, status};
  } else {
    RunOver(start, status, link);
  }
  while (!errors.empty() && (link->runs.empty() || errors.begin()->first < link->runs.begin()->first)) {
    const auto error = errors.extract(errors.begin());
    RunOver(error.mapped().first, error.mapped().second, link);
  }
}

void Runtime::RunOver(const StartRun& start, const absl::Status& status, const std::shared_ptr<WorkerLink>& link) {
  const bool handed_back = link != nullptr && link->handed_back.erase(start.run) > 0;
  const FunctionQueue::Function* function = queue_.Find(start.function);
  if (stopping_ || function == nullptr || function->run != start.run) return;
  if (status.ok()) {
    if (function->next_step < function->steps && !handed_back) {
      return Unreadable(start, absl::StrCat("an end after ", function->next_step, " of ", function->steps, " steps"));
    }
    if (queue_.RunEnded(start.function, start.run) == FunctionQueue::Ended::kCompleted) {
      if (link != nullptr) ++link->functions_done;
      FinishFunction(start.function, absl::OkStatus());
    }
    return Dispatch();
  }
  const auto detail = DetailOf(status);
  if (detail && detail->epoch() > options_.epoch.value()) newer_epoch_ = std::max(newer_epoch_, detail->epoch());
  switch (KindOf(status)) {
    case pb::ERROR_USER:
      queue_.Remove(start.function, start.run);
      MU_LOG(ERROR, "function {}: {}", start.function, status);
      FinishFunction(start.function, status);
      return BeginCancel(status);
    case pb::ERROR_NOT_INSTALLED:
      // The worker does not know the function (it started anew): install everything again.
      MU_LOG(WARN, "worker {}: {}; installing again", start.worker, status);
      queue_.RunEnded(start.function, start.run);
      if (link != nullptr) link->installed_version = 0;
      queue_.WorkerReady(start.worker, 0);
      return;
    default:
      break;
  }
  if (detail && detail->role() == pb::ROLE_PSSERVER) {
    // The worker is well, a server is not; its heartbeats decide whether it is lost.
    MU_LOG(WARN, "worker {}: server {} cannot be reached: {}", start.worker, detail->index(), status);
    queue_.RunEnded(start.function, start.run);
    return Dispatch();
  }
  if (link != nullptr && !link->gone) {
    // Its connection broke: whatever the process is doing, it must register again.
    if (auto lost = membership_.Remove(pb::ROLE_WORKER, start.worker.value(), link->member.incarnation)) {
      MemberLost(*lost, "unreachable", std::string(status.message()));
    }
  } else {
    queue_.RunEnded(start.function, start.run);
  }
  Dispatch();
}

void Runtime::Unreadable(const StartRun& start, const std::string& what) {
  const FunctionQueue::Unreadable decided = queue_.AnswerUnreadable(start.function, start.run);
  if (stopping_ || decided == FunctionQueue::Unreadable::kIgnored) return;
  const InstalledFunction* const installed = catalog_.FindFunction(queue_.Find(start.function)->work.fingerprint);
  const std::string name = installed == nullptr ? "" : installed->proto.name();
  const auto link = links_.find(start.worker);
  const std::string worker =
      link == links_.end() ? absl::StrCat("worker ", start.worker.value())
                           : absl::StrCat("worker ", start.worker.value(), " (pid ", link->second->member.pid, ", ",
                                          link->second->member.address, ")");
  const std::string message =
      absl::StrCat(worker, " answered function ", start.function.value(), " ('", name, "') with ", what);
  if (decided == FunctionQueue::Unreadable::kGiveUp) {
    pb::ErrorDetail detail;
    detail.set_kind(pb::ERROR_MACHINE);
    detail.set_role(pb::ROLE_WORKER);
    detail.set_index(start.worker.value());
    const absl::Status error = WithDetail(
        absl::InternalError(absl::StrCat(message, "; ", queue_.Find(start.function)->unreadable,
                                         " answers to it made no sense: are all workers of the coordinator's version?")),
        detail);
    MU_LOG(ERROR, "{}", error);
    queue_.Remove(start.function, start.run);
    FinishFunction(start.function, error);
    BeginCancel(error);
  }
  // Whatever else it says is not believed either; it must register again.
  if (link == links_.end()) return Dispatch();
  if (auto lost = membership_.Remove(pb::ROLE_WORKER, start.worker.value(), link->second->member.incarnation)) {
    MemberLost(*lost, "unreadable", message);
  }
  Dispatch();
}

void Runtime::BeginCancel(absl::Status error) {
  for (FunctionId id : queue_.CancelAll()) {
    FinishFunction(id, absl::CancelledError("cancelled: another function failed"));
  }
  if (cancelling_) {
    if (cancel_error_.ok()) cancel_error_ = std::move(error);
    return;
  }
  cancelling_ = true;
  cancel_error_ = std::move(error);
  changed_.SignalAll();
}

void Runtime::FinishCancel() {
  pb::CancelRunsRequest request;
  FunctionId below;
  std::vector<std::shared_ptr<WorkerLink>> links;
  std::function<absl::Status(FunctionId)> fence;
  {
    MutexLock lock(&mutex_);
    below = queue_.next_id();
    *request.mutable_context() = ContextLocked();
    request.set_below(below.value());
    for (auto& [id, link] : links_) links.push_back(link);
    fence = fence_;
  }
  for (auto& link : links) {
    const auto reply =
        Call<pb::CancelRunsReply>(*link->channel, "/muster.Worker/CancelRuns", request, {.timeout = options_.timeout});
    if (reply.ok()) continue;
    // It does not answer: its functions are over here, and the fence keeps its updates out there.
    MU_LOG(WARN, "worker {} does not confirm that its functions have ended: {}", link->id, reply.status());
    MutexLock lock(&mutex_);
    if (auto lost = membership_.Remove(pb::ROLE_WORKER, link->id.value(), link->member.incarnation)) {
      MemberLost(*lost, "unreachable", std::string(reply.status().message()));
    }
  }
  if (fence != nullptr) {
    if (const absl::Status fenced = fence(below); !fenced.ok()) MU_LOG(WARN, "fence: {}", fenced);
  }
  MutexLock lock(&mutex_);
  if (!cancel_error_.ok()) {
    error_ = std::make_shared<PendingError>();
    error_->status = cancel_error_;
  }
  cancelling_ = false;
  // Functions that were being repeated are part of what users were told is done: they are repeated from the beginning, in
  // a generation in which nothing of before is refused or applied.
  if (recovery_enabled_ && queue_.repeats_cancelled()) Act(recovery_.StateLost());
  changed_.SignalAll();
}

void Runtime::SetFence(std::function<absl::Status(FunctionId)> fence) {
  MutexLock lock(&mutex_);
  fence_ = std::move(fence);
}

}  // namespace mu
