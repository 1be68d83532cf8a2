#include "coordinator/training/trainer.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <limits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "common/base/steady_now.h"
#include "common/rpc/typed.h"
#include "coordinator/cluster/completion_queue.h"
#include "coordinator/training/step_pacer.h"

namespace mu {
namespace {

// Whether the job was asked to stop meanwhile.
constexpr absl::Duration kLook = absl::Milliseconds(100);
constexpr double kDefaultCallSeconds = 0.0005;
// What an empty call to a worker takes: the fixed cost that packing steps has to hide.
double MeasureCallSeconds(Coordinator& coordinator) {
  const auto workers = coordinator.runtime().Workers();
  if (workers.empty()) return kDefaultCallSeconds;
  std::vector<double> seconds;
  for (int i = 0; i < 5; ++i) {
    const absl::Time begin = SteadyNow();
    const auto reply =
        Call<pb::TelemetryReply>(*workers[0]->channel, "/muster.Worker/GetTelemetry",
                                 pb::TelemetryRequest(), {.timeout = absl::Seconds(1)});
    if (!reply.ok()) return kDefaultCallSeconds;
    seconds.push_back(absl::ToDoubleSeconds(SteadyNow() - begin));
  }
  std::sort(seconds.begin(), seconds.end());
  return seconds[seconds.size() / 2];
}

// What a checkpoint carries for the trainer.
struct LossState {
  uint32_t epoch = 0;  // from 1
  double sum = 0;
  double weight = 0;

  std::string ToString() const {
    return absl::StrFormat("epoch=%d loss_sum=%.17g loss_weight=%.17g", epoch, sum, weight);
  }
  bool Parse(const std::string& text) {
    return std::sscanf(text.c_str(), "epoch=%" SCNu32 " loss_sum=%lg loss_weight=%lg", &epoch, &sum,
                       &weight) == 3;
  }
};

// With visitation: none a step counts as a batch, whichever its worker read.
DataProgress ProgressOfSteps(const RestoredJob* restored, uint64_t batches) {
  uint64_t taken = 0;
  if (restored != nullptr) {
    const pb::JobPositionProto& position = restored->manifest.position();
    taken = position.steps();
    for (const auto& function : position.functions())
      taken += function.steps() - function.next_step();
  }
  return {taken / batches, batches - taken % batches};
}

}  // namespace

absl::StatusOr<TrainResult> Train(Coordinator& coordinator, const Function& function,
                                  const Dataset& dataset, const TrainOptions& options,
                                  const std::function<void(const TrainEvent&)>& on_event) {
  if (const uint32_t has = dataset.proto().epochs(); has > 0 && options.epochs > has) {
    return absl::InvalidArgumentError(absl::StrCat(
        "TrainOptions::epochs is ", options.epochs, ", and the data set '", dataset.name(),
        "' ends after ", has, "; leave out its Epochs(", has, "), or ask for fewer"));
  }
  if (options.bounded_staleness.has_value()) coordinator.BoundStaleness(options.bounded_staleness);
  const auto stopping = [&] { return options.stop != nullptr && options.stop->load() > 0; };
  // What is left of the data: everything, or what a continued job has not scheduled.
  DataProgress at;
  const bool each_for_itself = dataset.proto().visitation() == pb::VISITATION_NONE;
  const auto batches_in = [&](uint64_t epoch) {
    return coordinator.BatchesInEpoch(dataset, each_for_itself ? 0 : epoch);
  };
  if (each_for_itself) {
    MU_ASSIGN_OR_RETURN(const uint64_t batches, batches_in(0));
    at = ProgressOfSteps(options.restored, batches);
  } else {
    MU_ASSIGN_OR_RETURN(at, coordinator.ProgressOf(dataset));
  }
  // Epochs differ by a few batches (short ones at the ends of leases), and to count them exactly
  // takes a plan of the epoch: later ones are counted when they begin, until then as this one.
  MU_ASSIGN_OR_RETURN(const uint64_t usual, batches_in(at.epoch));
  uint64_t scheduled = at.epoch * usual;  // steps of the whole job
  if (options.max_steps > 0) {
    scheduled = 0;
    for (uint64_t epoch = 0; epoch < at.epoch; ++epoch) {
      MU_ASSIGN_OR_RETURN(const uint64_t batches, batches_in(epoch));
      scheduled += batches;
    }
  }
  scheduled += usual - std::min(usual, at.left);
  const uint64_t most =
      options.max_steps > 0 ? options.max_steps : std::numeric_limits<uint64_t>::max();
  // Of the whole job, if `left` steps of this epoch (from 1) are to be scheduled.
  const auto total_steps = [&](uint64_t epoch, uint64_t left) {
    const uint64_t later = options.epochs - std::min<uint64_t>(options.epochs, epoch);
    return std::min(std::max(most, scheduled), scheduled + left + later * usual);
  };
  uint64_t total = total_steps(at.epoch + 1, at.epoch < options.epochs ? at.left : 0);
  StepPacer pacer(options.steps_per_function, MeasureCallSeconds(coordinator),
                  options.bounded_staleness);
  TrainResult result;
  const absl::Time begin = SteadyNow();
  double loss_sum = 0, loss_weight = 0;
  CompletionQueue pending;  // tagged with their epochs
  if (options.restored != nullptr) {
    result.steps = options.restored->manifest.position().steps();
    result.samples = options.restored->manifest.position().samples();
    result.epochs_begun = std::min(options.epochs, static_cast<uint32_t>(at.epoch) + 1);
    LossState loss;
    if (loss.Parse(options.restored->user_state) && loss.epoch <= result.epochs_begun) {
      result.epochs_begun = loss.epoch;
      loss_sum = loss.sum;
      loss_weight = loss.weight;
      result.last_epoch_loss = loss_weight > 0 ? loss_sum / loss_weight : 0;
    }
    for (const RemoteValue& value : options.restored->unfinished)
      pending.Add(value, result.epochs_begun);
  }
  const uint64_t restored_steps = result.steps;

  // Of a job that is to stop: whether for long now nobody is there who could finish what runs.
  absl::Time alone_since = absl::InfiniteFuture();
  const auto alone = [&] {
    if (!stopping()) return false;
    const RuntimeCounts stats = coordinator.Counts();
    if (stats.workers_ready > 0 && stats.servers >= coordinator.runtime().options().servers) {
      alone_since = absl::InfiniteFuture();
      return false;
    }
    alone_since = std::min(alone_since, SteadyNow());
    return SteadyNow() - alone_since >= options.patience;
  };
  // What has arrived may have to be repeated, since a server was lost.
  const auto join = [&]() -> absl::Status {
    while (true) {
      MU_ASSIGN_OR_RETURN(const bool done, coordinator.Done());
      if (done) return absl::OkStatus();
      if (!stopping()) return coordinator.Join();
      if (alone()) {
        result.unfinished = true;
        return absl::OkStatus();
      }
      absl::SleepFor(kLook);  // between two looks: that nobody comes is announced by nobody
    }
  };
  const auto keep_loss = [&] {
    coordinator.SetUserState(
        LossState{std::max<uint32_t>(1, result.epochs_begun), loss_sum, loss_weight}.ToString());
  };
  // Takes a result. A worker that hangs keeps those of its functions, and holds up no other.
  const auto take = [&](const CompletionQueue::Completion& done) -> absl::Status {
    auto epoch = static_cast<uint32_t>(done.tag);
    const auto values = done.value.Fetch();
    if (!values.ok()) {
      // Cancelled because of another function, whose error Join knows.
      const absl::Status first = coordinator.Join();
      return first.ok() ? values.status() : first;
    }
    // What a continued job had in flight may be of the epoch before.
    if (!each_for_itself && !values->batches().empty())
      epoch = static_cast<uint32_t>(values->batches()[0].lease->epoch()) + 1;
    if (epoch > result.epochs_begun) {
      result.epochs_begun = epoch;
      loss_sum = loss_weight = 0;
    }
    ++result.functions;
    for (size_t i = 0; i < values->steps(); ++i) result.steps += values->samples(i) > 0 ? 1 : 0;
    result.samples += values->samples();
    double loss = 0;
    if (auto mean = values->Mean(options.loss); mean.ok()) {
      loss = *mean;
      if (epoch == result.epochs_begun) {  // else late, of an epoch whose loss is no longer kept
        loss_sum += loss * static_cast<double>(values->samples());
        loss_weight += static_cast<double>(values->samples());
      }
      result.last_epoch_loss = loss_weight > 0 ? loss_sum / loss_weight : 0;
    } else if (values->samples() > 0) {
      return mean.status();
    }
    keep_loss();
    pacer.Observe(absl::ToDoubleSeconds(SteadyNow() - begin), result.steps - restored_steps,
                  std::max<int>(1, static_cast<int>(coordinator.Counts().workers_ready)));
    if (on_event) on_event({result.epochs_begun, result.steps, total, result.samples, loss});
    return absl::OkStatus();
  };
  // Takes what has arrived; waits until fewer than `most_pending` functions are unfinished.
  const auto take_results = [&](size_t most_pending) -> absl::Status {
    while (!pending.empty() && !result.unfinished) {
      const bool wait = pending.size() >= most_pending;
      if (const auto done = pending.Next(wait ? kLook : absl::ZeroDuration())) {
        MU_RETURN_IF_ERROR(take(*done));
      } else if (!wait) {
        break;
      } else {
        result.unfinished = alone();
      }
    }
    return absl::OkStatus();
  };

  bool cut_short = false;
  for (uint64_t epoch = at.epoch + 1; epoch <= options.epochs && scheduled < most; ++epoch) {
    uint64_t left = at.left;
    if (epoch != at.epoch + 1) {
      MU_ASSIGN_OR_RETURN(left, batches_in(epoch - 1));
    }
    left = std::min(left, most - scheduled);
    total = total_steps(epoch, left);
    while (left > 0 && !stopping()) {
      const int workers = std::max<int>(1, static_cast<int>(coordinator.Counts().workers_ready));
      const uint32_t steps =
          static_cast<uint32_t>(std::min<uint64_t>(pacer.Next(total - scheduled, workers), left));
      pending.Add(coordinator.Schedule(function, {.steps = steps}), epoch);
      // Towards the end there is less to pack.
      if (result.steps_per_function == 0 || result.steps < total / 2)
        result.steps_per_function = steps;
      left -= steps;
      scheduled += steps;
      // Enough for every worker to have its next functions at hand, also where half of them hang;
      // few enough to stop and to adapt soon.
      const size_t in_flight = static_cast<size_t>(coordinator.runtime().options().in_flight);
      MU_RETURN_IF_ERROR(take_results(2 * in_flight * static_cast<size_t>(workers)));
    }
    if (left > 0 || stopping()) {
      cut_short = left > 0 || (epoch < options.epochs && scheduled < most);
      break;
    }
  }
  MU_RETURN_IF_ERROR(take_results(1));
  if (!result.unfinished) MU_RETURN_IF_ERROR(join());
  result.seconds = absl::ToDoubleSeconds(SteadyNow() - begin);
  result.stopped = cut_short || result.unfinished;
  return result;
}

}  // namespace mu
