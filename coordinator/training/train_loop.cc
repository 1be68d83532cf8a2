#include "coordinator/training/train_loop.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/steady_now.h"
#include "coordinator/cluster/completion_queue.h"
#include "coordinator/training/function_cost.h"
#include "coordinator/training/join_with_looks.h"
#include "coordinator/training/round_ends.h"
#include "coordinator/training/step_pacer.h"
#include "coordinator/training/stop_patience.h"
#include "coordinator/training/train_check.h"

namespace mu {
namespace {

// Whether the job was asked to stop meanwhile.
constexpr absl::Duration kLook = absl::Milliseconds(100);

// With visitation: none a step counts as a batch, whichever its worker read. An epoch that is just
// complete is the current one, as with data that workers share: its evaluation may be due.
DataProgress ProgressOfSteps(uint64_t taken, uint64_t batches) {
  if (taken > 0 && taken % batches == 0) return {taken / batches - 1, 0};
  return {taken / batches, batches - taken % batches};
}

// One call of Train.
class TrainLoop {
 public:
  TrainLoop(Coordinator& coordinator, const Function& function, const Dataset& dataset,
            const TrainOptions& options, const std::function<void(const TrainEvent&)>& on_event)
      : coordinator_(coordinator),
        function_(function),
        dataset_(dataset),
        options_(options),
        on_event_(on_event),
        history_(options.history != nullptr ? *options.history : own_history_),
        each_for_itself_(dataset.proto().visitation() == pb::VISITATION_NONE),
        most_(options.max_steps > 0 ? options.max_steps : std::numeric_limits<uint64_t>::max()),
        rounds_(options.sync.value_or(coordinator.runtime().rounds())),
        pacer_(rounds_.on() ? 1 : options.steps_per_function, MeasureFunctionSeconds(coordinator),
               options.max_gap, options.bounded_staleness) {}

  absl::StatusOr<TrainResult> Run();
  // By Run, which has done nothing.
  bool refused() const { return refused_; }
  // At its end, what it has done.
  TrainResult Done();

 private:
  bool Stopping() const { return options_.stop != nullptr && options_.stop->load() > 0; }
  absl::StatusOr<uint64_t> BatchesIn(uint64_t epoch) {
    return coordinator_.BatchesInEpoch(dataset_, each_for_itself_ ? 0 : epoch);
  }
  int Workers() const {
    return std::max<int>(1, static_cast<int>(coordinator_.Counts().workers_ready));
  }
  absl::Status FindPlace();
  void TakeRestored();
  absl::Status CheckSomethingIsLeft() const;
  // The error says that the options are refused.
  absl::Status Accept();
  uint64_t TotalSteps(uint64_t epoch, uint64_t left) const;
  uint64_t StepsOfFunction(uint64_t epoch, uint64_t left) const;
  absl::Status FindRoundEnds(uint64_t epoch, uint64_t batches, uint64_t wanted);
  absl::Status TrainEpoch(uint64_t epoch, uint64_t batches);
  absl::Status EvaluateIfDue(uint64_t epoch, bool epoch_ends);
  absl::Status Take(const CompletionQueue::Completion& done);
  absl::Status CountSteps(const FunctionResult& values, double mean);
  absl::Status TakeResults(size_t most_pending);
  void TellEndedEpochs(uint64_t scheduled_epoch);
  bool Alone();
  void Look() const {
    if (options_.on_look != nullptr) options_.on_look();
  }
  absl::Status Join();
  void KeepState() { coordinator_.SetUserState(history_.ToString()); }

  Coordinator& coordinator_;
  const Function& function_;
  const Dataset& dataset_;
  const TrainOptions& options_;
  const std::function<void(const TrainEvent&)>& on_event_;
  TrainingHistory own_history_;
  TrainingHistory& history_;
  const bool each_for_itself_;
  const uint64_t most_;  // steps of the job
  const RoundRules rounds_;
  StepPacer pacer_;
  const absl::Time begin_ = SteadyNow();
  absl::Duration evaluating_;  // how long it has stood still
  absl::Duration Trained() const { return SteadyNow() - begin_ - evaluating_; }

  DataProgress at_;         // what is left of the data at the beginning
  uint64_t usual_ = 0;      // batches of an epoch, nearly
  uint64_t scheduled_ = 0;  // steps of the whole job
  uint64_t total_ = 0;
  uint64_t restored_steps_ = 0;
  uint64_t earlier_steps_ = 0;  // of the job, by calls before this one
  RoundEnds round_ends_;        // of the current epoch
  uint64_t epoch_steps_ = 0;    // scheduled of this epoch, also by what came before
  std::optional<EvaluationSchedule> evaluations_;
  CompletionQueue pending_;                      // tagged with their epochs
  std::map<uint64_t, size_t> pending_by_epoch_;  // of these, how many
  uint64_t told_epochs_ = 0;                     // of which options_.on_epoch knows
  NobodyLeft nobody_left_{&coordinator_, options_.patience};
  bool refused_ = false;
  TrainResult result_;
};

// What is left of the data: everything, or what a continued job has not scheduled.
absl::Status TrainLoop::FindPlace() {
  if (each_for_itself_) {
    MU_ASSIGN_OR_RETURN(const uint64_t batches, BatchesIn(0));
    MU_ASSIGN_OR_RETURN(const uint64_t taken, coordinator_.StepsTaken(dataset_));
    at_ = ProgressOfSteps(taken, std::max<uint64_t>(1, batches));
  } else {
    MU_ASSIGN_OR_RETURN(at_, coordinator_.ProgressOf(dataset_));
  }
  // Epochs differ by a few batches (short ones at the ends of leases), and to count them exactly
  // takes a plan of the epoch: later ones are counted when they begin, until then as this one.
  MU_ASSIGN_OR_RETURN(usual_, BatchesIn(at_.epoch));
  scheduled_ = at_.epoch * usual_;
  // What happens at a step of the job happens there also after a restart.
  if (options_.max_steps > 0 || options_.eval_every.any()) {
    scheduled_ = 0;
    for (uint64_t epoch = 0; epoch < at_.epoch; ++epoch) {
      MU_ASSIGN_OR_RETURN(const uint64_t batches, BatchesIn(epoch));
      scheduled_ += batches;
    }
  }
  scheduled_ += usual_ - std::min(usual_, at_.left);
  return absl::OkStatus();
}

void TrainLoop::TakeRestored() {
  told_epochs_ = at_.epoch;
  if (options_.restored == nullptr) {
    // An epoch that is complete is still the current one, and was told by the call that ended it,
    // unless that call left it unfinished: its results come to nobody.
    if (at_.left == 0 && scheduled_ > 0) ++told_epochs_;
    earlier_steps_ = scheduled_;
    return;
  }
  const RestoredJob& restored = *options_.restored;
  if (options_.history == nullptr) {
    history_ = TrainingHistory::Parse(restored.user_state);
    history_.SetPending(std::nullopt);  // only a trainer evaluates beside training
  }
  result_.steps = restored_steps_ = restored.manifest.position().steps();
  result_.samples = restored.manifest.position().samples();
  result_.epochs_begun = std::min(options_.epochs, static_cast<uint32_t>(at_.epoch) + 1);
  if (!history_.epochs().empty())
    result_.epochs_begun = std::min(result_.epochs_begun, history_.epochs().back().epoch);
  for (const RemoteValue& value : restored.unfinished) {
    pending_.Add(value, result_.epochs_begun);
    ++pending_by_epoch_[result_.epochs_begun];
  }
  // Their results may be the last of the epoch before.
  if (!restored.unfinished.empty() && result_.epochs_begun > 0)
    told_epochs_ = std::min<uint64_t>(told_epochs_, result_.epochs_begun - 1);
}

// Whoever calls a second time to train on has to say so.
absl::Status TrainLoop::CheckSomethingIsLeft() const {
  const bool all_trained = at_.epoch + (at_.left == 0 ? 1 : 0) >= options_.epochs;
  if (options_.restored != nullptr || options_.epochs == 0 || scheduled_ == 0)
    return absl::OkStatus();
  if (scheduled_ >= most_) {
    return absl::FailedPreconditionError(absl::StrCat(
        "TrainOptions::max_steps is ", most_, ", counted from the job's beginning, and ",
        scheduled_, " have been trained already: nothing is left to do; ask for more"));
  }
  if (!all_trained) return absl::OkStatus();
  if (each_for_itself_) {
    return absl::FailedPreconditionError(absl::StrCat(
        "TrainOptions::epochs is ", options_.epochs, ", counted from the job's beginning, and ",
        scheduled_, " steps of the data set '", dataset_.name(), "', ", usual_,
        " for each epoch, have been taken already: nothing is left to do; ask for more epochs, or "
        "let the data set begin again with StartEpoch(data, 0)"));
  }
  return absl::FailedPreconditionError(absl::StrCat(
      "TrainOptions::epochs is ", options_.epochs, ", counted from the job's beginning, and the ",
      "data set '", dataset_.name(), "' has been read ", at_.epoch + (at_.left == 0 ? 1 : 0),
      " times already: nothing is left to do; ask for more epochs, or let the data set begin "
      "again ",
      "with StartEpoch(data, 0)"));
}

absl::Status TrainLoop::Accept() {
  MU_RETURN_IF_ERROR(CheckSomethingIsLeft());
  return options_.sync.has_value() ? coordinator_.SynchronousRounds(*options_.sync)
                                   : absl::OkStatus();
}

// Of the whole job, if `left` steps of this epoch (from 1) are to be scheduled.
uint64_t TrainLoop::TotalSteps(uint64_t epoch, uint64_t left) const {
  const uint64_t later = options_.epochs - std::min<uint64_t>(options_.epochs, epoch);
  return std::min(std::max(most_, scheduled_), scheduled_ + left + later * usual_);
}

// Of a job that is to stop: whether for long now nobody is there who could finish what runs.
bool TrainLoop::Alone() { return Stopping() && nobody_left_.ForLong(); }

// What has arrived may have to be repeated, since a server was lost.
absl::Status TrainLoop::Join() {
  return JoinWithLooks(coordinator_, [this] {
    Look();
    result_.unfinished = Alone();  // that nobody comes is announced by nobody
    return !result_.unfinished;
  });
}

// Takes a result. A worker that hangs keeps those of its functions, and holds up no other.
absl::Status TrainLoop::Take(const CompletionQueue::Completion& done) {
  auto epoch = static_cast<uint32_t>(done.tag);
  const auto values = done.value.Fetch();
  if (const auto it = pending_by_epoch_.find(done.tag); --it->second == 0)
    pending_by_epoch_.erase(it);
  if (!values.ok()) {
    // Cancelled because of another function, whose error Join knows.
    const absl::Status first = coordinator_.Join();
    return first.ok() ? values.status() : first;
  }
  // What a continued job had in flight may be of the epoch before.
  if (!each_for_itself_ && !values->batches().empty())
    epoch = static_cast<uint32_t>(values->batches()[0].lease->epoch()) + 1;
  result_.epochs_begun = std::max(result_.epochs_begun, epoch);
  ++result_.functions;
  const absl::StatusOr<double> mean = values->Mean(options_.loss);
  if (mean.ok()) {
    history_.AddLoss(epoch, *mean, values->samples());
  } else if (values->samples() > 0) {
    coordinator_.Cancel();  // no function has failed: what runs would go on
    return mean.status();
  }
  KeepState();
  MU_RETURN_IF_ERROR(CountSteps(*values, mean.value_or(0)));
  pacer_.ObserveFunction(*values, absl::ToDoubleSeconds(Trained()), result_.steps - restored_steps_,
                         Workers());
  return absl::OkStatus();
}

// Counts those that had records, and tells of each.
absl::Status TrainLoop::CountSteps(const FunctionResult& values, double mean) {
  size_t last = values.steps();  // behind it nothing is told
  while (last > 0 && values.samples(last - 1) == 0) --last;
  for (size_t i = 0; i < last; ++i) {
    if (values.samples(i) == 0) continue;
    ++result_.steps;
    result_.samples += values.samples(i);
    if (!on_event_) continue;
    MU_ASSIGN_OR_RETURN(const Tensor loss, values.Get(i, options_.loss));
    TrainEvent event = {result_.epochs_begun, earlier_steps_ + result_.steps, total_,
                        result_.samples, *loss.data<float>()};  // a scalar: Mean has seen it
    if (i + 1 == last) event.function_loss = mean;
    on_event_(event);
  }
  return absl::OkStatus();
}

// Takes what has arrived; waits until fewer than `most_pending` functions are unfinished.
absl::Status TrainLoop::TakeResults(size_t most_pending) {
  while (!pending_.empty() && !result_.unfinished) {
    Look();
    const bool wait = pending_.size() >= most_pending;
    if (const auto done = pending_.Next(wait ? kLook : absl::ZeroDuration(),
                                        /*more_follows=*/most_pending > 1)) {
      MU_RETURN_IF_ERROR(Take(*done));
    } else if (!wait) {
      break;
    } else {
      result_.unfinished = Alone();
    }
  }
  return absl::OkStatus();
}

// Everything of the epochs up to this one has been scheduled.
void TrainLoop::TellEndedEpochs(uint64_t scheduled_epoch) {
  while (told_epochs_ < scheduled_epoch && !result_.unfinished &&
         (pending_by_epoch_.empty() || pending_by_epoch_.begin()->first > told_epochs_ + 1)) {
    ++told_epochs_;
    if (options_.on_epoch == nullptr) continue;
    for (const EpochLoss& epoch : history_.epochs()) {
      if (epoch.epoch == told_epochs_) options_.on_epoch(epoch);
    }
  }
}

// `batches` are left of the epoch, of which the first `wanted` are trained on.
absl::Status TrainLoop::FindRoundEnds(uint64_t epoch, uint64_t batches, uint64_t wanted) {
  if (!rounds_.one_lease() || each_for_itself_) return absl::OkStatus();
  MU_ASSIGN_OR_RETURN(const auto leases, coordinator_.BatchesOfLeases(dataset_, epoch - 1));
  const uint64_t all = std::accumulate(leases.begin(), leases.end(), uint64_t{0});
  epoch_steps_ = all - std::min(all, batches);
  round_ends_ = RoundEnds(rounds_.replicas, leases, epoch_steps_ + wanted);
  return absl::OkStatus();
}

absl::Status TrainLoop::EvaluateIfDue(uint64_t epoch, bool epoch_ends) {
  const uint64_t round = round_ends_.Ended(epoch_steps_);
  if (round == 0) return absl::OkStatus();
  if (options_.go_on != nullptr && !Stopping() && !result_.ended) {
    MU_ASSIGN_OR_RETURN(const bool go_on, options_.go_on());
    result_.ended = !go_on;
  }
  if (options_.evaluates != nullptr && options_.evaluates()) evaluations_->UnderWay(SteadyNow());
  if (options_.evaluate == nullptr || Stopping() || result_.ended ||
      !evaluations_->Due(scheduled_, epoch_ends ? epoch : 0, SteadyNow(), round))
    return absl::OkStatus();
  MU_RETURN_IF_ERROR(TakeResults(1));
  if (!result_.unfinished) MU_RETURN_IF_ERROR(Join());
  if (result_.unfinished) return absl::OkStatus();
  TellEndedEpochs(epoch_ends ? epoch : epoch - 1);
  const absl::Time begin = SteadyNow();
  const absl::StatusOr<bool> go_on =
      options_.evaluate({scheduled_, static_cast<uint32_t>(epoch), epoch_ends});
  evaluating_ += SteadyNow() - begin;
  MU_RETURN_IF_ERROR(go_on.status());
  result_.ended = !*go_on;
  evaluations_->Evaluated(scheduled_, SteadyNow());
  KeepState();
  return absl::OkStatus();
}

// Where training is about to stand still, as at its end, the last functions are small.
uint64_t TrainLoop::StepsOfFunction(uint64_t epoch, uint64_t left) const {
  const uint64_t due = evaluations_->StepsUntilDue(scheduled_);
  uint64_t remaining = std::min(total_ - scheduled_, due);
  if (options_.eval_every.epochs > 0 && epoch % options_.eval_every.epochs == 0)
    remaining = std::min(remaining, left);
  return std::min<uint64_t>(pacer_.Next(remaining, Workers()), left);
}

// Schedules what is left of this epoch (from 1), which are so many batches.
absl::Status TrainLoop::TrainEpoch(uint64_t epoch, uint64_t batches) {
  const uint64_t wanted = std::min(batches, most_ - std::min(most_, scheduled_));
  uint64_t left = wanted;
  total_ = TotalSteps(epoch, left);
  MU_RETURN_IF_ERROR(FindRoundEnds(epoch, batches, wanted));
  // A round that has begun is completed before training stops.
  const auto stops = [this] { return Stopping() && round_ends_.Ended(epoch_steps_) > 0; };
  while (left > 0 && !stops()) {
    MU_RETURN_IF_ERROR(EvaluateIfDue(epoch, /*epoch_ends=*/false));
    if (result_.ended || result_.unfinished || stops()) break;
    const auto steps = static_cast<uint32_t>(StepsOfFunction(epoch, left));
    pending_.Add(coordinator_.Schedule(function_, {.steps = steps}), epoch);
    ++pending_by_epoch_[epoch];
    // Towards the end there is less to pack. What ends before that, an epoch or the steps until an
    // evaluation, leaves remainders, which nobody chose.
    if (result_.steps_per_function == 0 || result_.steps < total_ / 2)
      result_.steps_per_function = pacer_.Chosen(total_ - scheduled_, Workers());
    left -= steps;
    scheduled_ += steps;
    epoch_steps_ += steps;
    // Enough for every worker to have its next functions at hand, also where half of them hang;
    // few enough to stop and to adapt soon.
    // And enough for a round while the last one is being committed.
    const auto in_flight = static_cast<size_t>(coordinator_.runtime().options().in_flight);
    MU_RETURN_IF_ERROR(TakeResults(std::max<size_t>(2 * in_flight * static_cast<size_t>(Workers()),
                                                    2 * size_t{rounds_.most()})));
    TellEndedEpochs(epoch - 1);
  }
  result_.end = {scheduled_, static_cast<uint32_t>(epoch), left == 0 && wanted == batches};
  result_.stopped = left > 0 && !result_.ended;
  if (result_.stopped) return absl::OkStatus();
  return EvaluateIfDue(epoch, result_.end.epoch_ends);
}

absl::StatusOr<TrainResult> TrainLoop::Run() {
  MU_RETURN_IF_ERROR(FindPlace());
  const absl::Status accepted = Accept();
  refused_ = !accepted.ok();
  MU_RETURN_IF_ERROR(accepted);
  if (options_.on_begin != nullptr) options_.on_begin();
  if (options_.bounded_staleness.has_value())
    coordinator_.BoundStaleness(options_.bounded_staleness);
  TakeRestored();
  evaluations_.emplace(options_.eval_every, history_.EvaluatedSteps(), SteadyNow());
  result_.end = {scheduled_, static_cast<uint32_t>(at_.epoch) + 1, at_.left == 0};
  for (uint64_t epoch = at_.epoch + 1; epoch <= options_.epochs; ++epoch) {
    uint64_t batches = at_.left;
    if (epoch != at_.epoch + 1) {
      MU_ASSIGN_OR_RETURN(batches, BatchesIn(epoch - 1));
    }
    MU_RETURN_IF_ERROR(TrainEpoch(epoch, batches));
    if (result_.stopped || result_.ended || result_.unfinished) break;
    if (epoch == options_.epochs || scheduled_ >= most_) break;
    if (Stopping()) {
      result_.stopped = true;
      break;
    }
  }
  MU_RETURN_IF_ERROR(TakeResults(1));
  if (!result_.unfinished) MU_RETURN_IF_ERROR(Join());
  TellEndedEpochs(result_.end.epoch_ends ? result_.end.epoch : result_.end.epoch - 1);
  result_.stopped = result_.stopped || result_.unfinished;
  return Done();
}

TrainResult TrainLoop::Done() {
  result_.seconds = absl::ToDoubleSeconds(Trained());
  result_.epochs.assign(history_.epochs().begin(), history_.epochs().end());
  if (!result_.epochs.empty()) result_.last_epoch_loss = result_.epochs.back().loss();
  return std::move(result_);
}

}  // namespace

absl::StatusOr<TrainResult> Train(Coordinator& coordinator, const Function& function,
                                  const Dataset& dataset, const TrainOptions& options,
                                  const std::function<void(const TrainEvent&)>& on_event) {
  MU_RETURN_IF_ERROR(CheckTrainOptions(coordinator, function, dataset, options));
  TrainLoop loop(coordinator, function, dataset, options, on_event);
  absl::StatusOr<TrainResult> result = loop.Run();
  if (!result.ok() && !loop.refused() && options.on_failure != nullptr)
    options.on_failure(loop.Done());
  return result;
}

}  // namespace mu
