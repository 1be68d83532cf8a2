#include "psserver/core/save_line.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace mu {
namespace {

// Attempts; a copy of an older request is hardly on its way any more
constexpr size_t kRemembered = 64;

}  // namespace

const SaveLine::Result* SaveLine::Remembered(uint64_t attempt) const {
  if (attempt == 0) return nullptr;
  for (const auto& [ended, result] : ended_) {
    if (ended == attempt) return &result;
  }
  return nullptr;
}

SaveLine::Turn SaveLine::Ask(PsCallId call, uint64_t attempt, uint64_t epoch) {
  if (const Result* result = Remembered(attempt)) return {Turn::Step::kDone, *result};
  Save save{call, attempt, epoch, "", false};
  if (!running_.has_value()) {
    save.started = true;
    running_ = std::move(save);
    return {Turn::Step::kRun};
  }
  const bool same = attempt != 0 && running_->attempt == attempt;
  if (!same && epoch > running_->epoch) Cancel("a newer coordinator saves");
  waiting_.push_back(std::move(save));
  return {Turn::Step::kWait};
}

SaveLine::Turn SaveLine::Look(PsCallId call) {
  if (const auto it = done_.find(call); it != done_.end()) {
    Turn turn{Turn::Step::kDone, std::move(it->second)};
    done_.erase(it);
    return turn;
  }
  if (!running_.has_value() || running_->call != call || running_->started)
    return {Turn::Step::kWait};
  running_->started = true;
  return {Turn::Step::kRun};
}

void SaveLine::End(const Result& result) {
  const uint64_t attempt = running_->attempt;
  running_.reset();
  if (attempt != 0) {
    if (result.ok()) ended_.emplace_back(attempt, result);
    if (ended_.size() > kRemembered) ended_.pop_front();
    // Repeats share the result of the first, whatever it is.
    std::erase_if(waiting_, [&](const Save& save) {
      if (save.attempt != attempt) return false;
      done_.emplace(save.call, result);
      return true;
    });
  }
  StartNext();
}

void SaveLine::StartNext() {
  if (waiting_.empty()) return;
  const auto next =
      std::max_element(waiting_.begin(), waiting_.end(),
                       [](const Save& a, const Save& b) { return a.epoch < b.epoch; });
  running_ = std::move(*next);
  waiting_.erase(next);
}

void SaveLine::Cancel(const std::string& why) {
  if (running_.has_value() && running_->cancelled.empty()) running_->cancelled = why;
}

absl::Status SaveLine::GoOn() const {
  if (!running_.has_value() || running_->cancelled.empty()) return absl::OkStatus();
  return absl::AbortedError(absl::StrCat("the save was ended: ", running_->cancelled));
}

}  // namespace mu
