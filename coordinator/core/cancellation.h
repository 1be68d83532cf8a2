// Who still has to confirm a cancellation: first the workers, that nothing of it runs there, then
// the servers, that they refuse what is on its way. A pure state machine.
#pragma once

#include <cstdint>
#include <map>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/base/ids.h"

namespace mu {

// See ServerTask::background.
inline absl::Status LacksWhatWasCancelled() {
  return absl::CancelledError(
      "functions were cancelled, and none that trains was scheduled since: a job that is continued "
      "from a checkpoint of this moment would lack their data");
}

class Cancellation {
 public:
  // Everything below `below` that ran in `generation`; `error` is what users are told at the end.
  void Begin(FunctionId below, Generation generation, absl::Status error) {
    under_way_ = true;
    fencing_ = false;
    waiting_.clear();
    ask_again_at_ = absl::InfiniteFuture();
    below_ = below;
    generation_ = generation;
    error_ = std::move(error);
  }
  void End() { under_way_ = false; }
  bool under_way() const { return under_way_; }

  FunctionId below() const { return below_; }
  Generation generation() const { return generation_; }
  const absl::Status& error() const { return error_; }
  // Another function failed while this one was being cancelled: the first error is reported.
  void Also(absl::Status error) {
    if (error_.ok()) error_ = std::move(error);
  }

  // The worker is asked now, perhaps again.
  void WaitFor(WorkerId worker, Incarnation incarnation, absl::Time now) {
    waiting_[worker] = {incarnation, now};
  }
  // Whether this incarnation was asked before `time`, and is waited for.
  bool AskedBefore(absl::Time time, WorkerId worker, Incarnation incarnation) const {
    const auto it = waiting_.find(worker);
    return it != waiting_.end() && it->second.incarnation == incarnation && it->second.asked < time;
  }
  // It has confirmed, or is gone. False if nobody waits for this incarnation.
  bool Quiet(WorkerId worker, Incarnation incarnation) {
    const auto it = waiting_.find(worker);
    if (it == waiting_.end() || it->second.incarnation != incarnation) return false;
    waiting_.erase(it);
    return true;
  }
  bool workers_are_quiet() const { return waiting_.empty(); }

  // These servers are asked, again perhaps; only the newest attempt's answer counts.
  uint64_t NextAttempt(absl::Time now, std::map<uint32_t, Incarnation> servers) {
    if (!fencing_) fencing_since_ = now;
    asked_ = std::move(servers);
    fencing_ = true;
    ask_again_at_ = absl::InfiniteFuture();
    return ++attempt_;
  }
  bool fencing() const { return fencing_; }
  bool Asked(uint32_t server, Incarnation incarnation) const {
    const auto it = asked_.find(server);
    return it != asked_.end() && it->second == incarnation;
  }
  // Later by the time that this process stood still meanwhile.
  absl::Time fencing_since() const { return fencing_since_; }
  void StoodStill(absl::Duration time) {
    if (fencing_) fencing_since_ += time;
  }
  bool Waits(uint64_t attempt) const {
    return under_way_ && fencing_ && attempt == attempt_ && ask_again_at_ == absl::InfiniteFuture();
  }
  void AskAgainAt(absl::Time time) { ask_again_at_ = time; }
  absl::Time ask_again_at() const { return under_way_ ? ask_again_at_ : absl::InfiniteFuture(); }

 private:
  struct Waiting {
    Incarnation incarnation;
    absl::Time asked;
  };
  bool under_way_ = false;
  FunctionId below_;
  Generation generation_;
  absl::Status error_;
  std::map<WorkerId, Waiting> waiting_;
  bool fencing_ = false;
  absl::Time fencing_since_;
  std::map<uint32_t, Incarnation> asked_;
  uint64_t attempt_ = 0;  // grows from one cancellation to the next: late answers are not taken
  absl::Time ask_again_at_ = absl::InfiniteFuture();
};

}  // namespace mu
