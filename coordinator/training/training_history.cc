#include "coordinator/training/training_history.h"

#include <algorithm>
#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <iterator>
#include <utility>

#include "absl/strings/str_format.h"
#include "coordinator/training/evaluation_json.h"

namespace mu {
namespace {

using Json = nlohmann::ordered_json;

constexpr char kNewest[] = "epoch=%" SCNu32 " loss_sum=%lg loss_weight=%lg";

}  // namespace

TrainingHistory TrainingHistory::Parse(const std::string& text) {
  TrainingHistory history;
  const size_t begin = text.find('{');
  if (begin != std::string::npos) {
    const Json past = Json::parse(text.substr(begin), nullptr, /*allow_exceptions=*/false);
    if (!past.is_object()) return history;
    for (const Json& epoch : ListOf(past, "epochs")) {
      history.epochs_.push_back({static_cast<uint32_t>(CountOf(epoch, "epoch")),
                                 NumberOf(epoch, "loss_sum"), CountOf(epoch, "samples")});
    }
    for (const Json& evaluation : ListOf(past, "evaluations"))
      history.evaluations_.push_back(EvaluationOf(evaluation));
    if (const auto stopping = past.find("early_stopping"); stopping != past.end()) {
      history.stopping_ = {
          TextOf(*stopping, "metric"),
          {NumberOf(*stopping, "best"), CountOf(*stopping, "best_steps"),
           TextOf(*stopping, "best_checkpoint"), static_cast<uint32_t>(CountOf(*stopping, "waits")),
           CountOf(*stopping, "seen_steps")}};
      // Earlier versions did not say so, and had seen them all.
      if (!stopping->contains("seen_steps")) {
        history.stopping_->state.seen_steps =
            history.evaluations_.empty() ? 0 : history.evaluations_.back().steps;
      }
    }
    if (const auto best = past.find("keep_best"); best != past.end()) {
      history.best_ = {TextOf(*best, "metric"), {}};
      for (const Json& checkpoint : ListOf(*best, "checkpoints")) {
        history.best_->checkpoints.push_back({TextOf(checkpoint, "checkpoint"),
                                              NumberOf(checkpoint, "value"),
                                              CountOf(checkpoint, "steps")});
      }
    }
    if (const auto pending = past.find("pending"); pending != past.end()) {
      history.pending_ = {TextOf(*pending, "checkpoint"), CountOf(*pending, "steps"),
                          static_cast<uint32_t>(CountOf(*pending, "epoch")),
                          CountOf(*pending, "current") != 0};
    }
    if (const auto back = past.find("brought_back"); back != past.end()) {
      history.brought_back_ = {CountOf(*back, "steps"),
                               static_cast<uint32_t>(CountOf(*back, "epoch"))};
    }
  }
  EpochLoss newest;
  double samples = 0;
  if (std::sscanf(text.c_str(), kNewest, &newest.epoch, &newest.loss_sum, &samples) == 3) {
    newest.samples = static_cast<uint64_t>(samples);
    if (newest.samples > 0) history.epochs_.push_back(newest);
  }
  return history;
}

std::string TrainingHistory::ToString() const {
  if (!past_known_) {
    Json past = Json::object();
    for (size_t i = 0; i + 1 < epochs_.size(); ++i) {
      const EpochLoss& epoch = epochs_[i];
      past["epochs"].push_back({{"epoch", epoch.epoch},
                                {"loss_sum", NumberToJson(epoch.loss_sum)},
                                {"samples", epoch.samples}});
    }
    for (const Evaluation& evaluation : evaluations_)
      past["evaluations"].push_back(ToJson(evaluation));
    if (stopping_.has_value()) {
      past["early_stopping"] = {{"metric", stopping_->metric},
                                {"best", NumberToJson(stopping_->state.best)},
                                {"best_steps", stopping_->state.best_steps},
                                {"best_checkpoint", stopping_->state.best_checkpoint},
                                {"waits", stopping_->state.waits},
                                {"seen_steps", stopping_->state.seen_steps}};
    }
    if (best_.has_value()) {
      past["keep_best"] = {{"metric", best_->metric}, {"checkpoints", Json::array()}};
      for (const BestCheckpoint& checkpoint : best_->checkpoints) {
        past["keep_best"]["checkpoints"].push_back({{"checkpoint", checkpoint.directory},
                                                    {"value", checkpoint.value},
                                                    {"steps", checkpoint.steps}});
      }
    }
    if (pending_.has_value()) {
      past["pending"] = {{"checkpoint", pending_->checkpoint},
                         {"steps", pending_->steps},
                         {"epoch", pending_->epoch}};
      if (pending_->current) past["pending"]["current"] = 1;
    }
    if (brought_back_.has_value()) {
      past["brought_back"] = {{"steps", brought_back_->steps}, {"epoch", brought_back_->epoch}};
    }
    past_ = past.empty() ? "" : " " + past.dump(-1, ' ', false, Json::error_handler_t::replace);
    past_known_ = true;
  }
  const EpochLoss newest = epochs_.empty() ? EpochLoss() : epochs_.back();
  return absl::StrFormat("epoch=%d loss_sum=%.17g loss_weight=%.17g%s", newest.epoch,
                         newest.loss_sum, static_cast<double>(newest.samples), past_);
}

void TrainingHistory::AddLoss(uint32_t epoch, double loss, uint64_t samples) {
  if (brought_back_.has_value()) {
    brought_back_.reset();
    past_known_ = false;
  }
  auto it = std::lower_bound(
      epochs_.begin(), epochs_.end(), epoch,
      [](const EpochLoss& listed, uint32_t number) { return listed.epoch < number; });
  if (it == epochs_.end() || it->epoch != epoch) {
    if (it == epochs_.begin() && epochs_.size() == kMostListed)
      return;  // late, not listed any more
    it = epochs_.insert(it, EpochLoss{epoch});
    past_known_ = false;
  }
  if (std::next(it) != epochs_.end()) past_known_ = false;
  it->loss_sum += loss * static_cast<double>(samples);
  it->samples += samples;
  if (epochs_.size() > kMostListed) epochs_.pop_front();
}

void TrainingHistory::AddEvaluation(Evaluation evaluation) {
  if (!evaluations_.empty() && evaluations_.back().steps == evaluation.steps)
    evaluations_.pop_back();
  evaluations_.push_back(std::move(evaluation));
  if (evaluations_.size() > kMostListed) evaluations_.pop_front();
  past_known_ = false;
}

void TrainingHistory::SetEarlyStopping(const std::optional<EarlyStopping>& stopping) {
  stopping_.reset();
  if (stopping.has_value()) stopping_ = {stopping->options().metric, stopping->state()};
  past_known_ = false;
}

void TrainingHistory::SetBest(const BestCheckpoints& best) {
  best_ = {best.options().metric, best.best()};
  past_known_ = false;
}

void TrainingHistory::SetPending(std::optional<PendingEvaluation> pending) {
  pending_ = std::move(pending);
  past_known_ = false;
}

void TrainingHistory::SetBroughtBack(ValuesMoment moment) {
  brought_back_ = moment;
  past_known_ = false;
}

uint64_t TrainingHistory::EvaluatedSteps() const {
  if (pending_.has_value()) return pending_->steps;
  return evaluations_.empty() ? 0 : evaluations_.back().steps;
}

std::set<std::string> TrainingHistory::Checkpoints(Best which) const {
  std::set<std::string> names;
  if (pending_.has_value()) names.insert(pending_->checkpoint);
  if (which.of_early_stopping && stopping_.has_value())
    names.insert(stopping_->state.best_checkpoint);
  if (which.of_keep_best && best_.has_value()) {
    for (const BestCheckpoint& checkpoint : best_->checkpoints) names.insert(checkpoint.directory);
  }
  names.erase("");
  return names;
}

EarlyStopping TrainingHistory::EarlyStoppingWith(EarlyStoppingOptions options) const {
  if (stopping_.has_value() && stopping_->metric == options.metric)
    return EarlyStopping(std::move(options), stopping_->state);
  return Replay(std::move(options), nullptr);
}

EarlyStopping TrainingHistory::EarlyStoppingOf(EarlyStoppingOptions options,
                                               const std::set<std::string>& there) const {
  EarlyStopping stopping = Replay(options, &there);
  if (std::isfinite(stopping.state().best)) return stopping;
  return EarlyStopping(std::move(options));
}

EarlyStopping TrainingHistory::Replay(EarlyStoppingOptions options,
                                      const std::set<std::string>* there) const {
  EarlyStopping stopping(std::move(options));
  for (const Evaluation& evaluation : evaluations_) {
    const auto metric = evaluation.metrics.find(stopping.options().metric);
    if (metric == evaluation.metrics.end()) continue;  // nobody asked for it
    if (there != nullptr && !there->contains(evaluation.checkpoint)) continue;
    stopping.Observe(metric->second, evaluation.steps, evaluation.checkpoint);
  }
  return stopping;
}

BestCheckpoints TrainingHistory::BestWith(KeepBestOptions options) const {
  if (best_.has_value() && best_->metric == options.metric)
    return BestCheckpoints(std::move(options), best_->checkpoints);
  return BestCheckpoints(std::move(options));  // others were not kept
}

std::vector<BestCheckpoint> TrainingHistory::ForgetBestBut(const std::set<std::string>& there) {
  std::vector<BestCheckpoint> gone;
  if (!best_.has_value()) return gone;
  std::vector<BestCheckpoint> left;
  for (BestCheckpoint& checkpoint : best_->checkpoints)
    (there.contains(checkpoint.directory) ? left : gone).push_back(std::move(checkpoint));
  best_->checkpoints = std::move(left);
  past_known_ = false;
  return gone;
}

}  // namespace mu
