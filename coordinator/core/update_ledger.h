// How many acknowledged updates of partitions were rolled back when servers were restored. Pure;
// not synchronised.
//
// A server counts the updates that its state holds; a step's result brings how many it made on each
// server. What a restored server holds may contain updates whose results never came (their worker
// was lost, or a restore was quicker), so the difference of the two counts says too little at
// first. Those steps run again, and their results say how many partitions were left alone because
// the restored state held them: these were acknowledged by nobody before and are added then. After
// a second restore in between, what the first difference lacked the second one has too much; the
// sum is right.
#pragma once

#include <cstdint>
#include <vector>

namespace mu {

class UpdateLedger {
 public:
  // A result of a run that is the current one: `updates` partitions changed on the server,
  // `inherited` were left alone. `first`: no result of this step had come before.
  void StepDone(uint32_t server, uint64_t updates, uint64_t inherited, bool first) {
    At(server) += static_cast<int64_t>(updates);
    if (first) rolled_back_ += static_cast<int64_t>(inherited);
  }

  // The server has been restored; its state holds `held` updates since the job began.
  void Restored(uint32_t server, uint64_t held) {
    int64_t& acknowledged = At(server);
    rolled_back_ += acknowledged - static_cast<int64_t>(held);
    acknowledged = static_cast<int64_t>(held);
  }

  // What a checkpoint begun now has to say of the server for Continue.
  uint64_t acknowledged(uint32_t server) const {
    return server < acknowledged_.size() ? static_cast<uint64_t>(acknowledged_[server]) : 0;
  }
  // In a coordinator that continues from a checkpoint, before Restored: `acknowledged` as it was
  // then.
  void Continue(uint32_t server, uint64_t acknowledged) {
    At(server) = static_cast<int64_t>(acknowledged);
  }

  // Of all restores so far: exact once all steps that were under way at a restore have their
  // results, before that it may be too small, even negative. Two rare things it cannot tell: a
  // checkpoint begun before what was under way at a restore has its results makes Continue count
  // that twice; what comes from one with its repeat's result missing is not counted. Nor is it
  // exact after a cancellation, and after synchronous rounds were begun, changed or ended and
  // servers were restored.
  int64_t rolled_back() const { return rolled_back_; }

 private:
  int64_t& At(uint32_t server) {
    if (acknowledged_.size() <= server) acknowledged_.resize(server + 1);
    return acknowledged_[server];
  }

  std::vector<int64_t> acknowledged_;  // by server
  int64_t rolled_back_ = 0;
};

}  // namespace mu
