// A core in synchronous rounds.
#pragma once

#include <string>
#include <utility>

#include "tests/coordinator/core/core_driver.h"

namespace mu::testing {

class CoreRoundsTest : public ::testing::Test {
 protected:
  void Serve(uint32_t workers, RoundRules rules, uint32_t functions = 0) {
    d_.Step(event::SetRounds{rules});
    d_.Serve(workers);
    for (uint32_t f = 0; f < functions; ++f) d_.Schedule();
  }
  // As the driver's; remembers the attempt of a commitment that follows.
  std::string Result(uint64_t function, uint32_t step, uint32_t samples = 4) {
    return Note(d_.Result(function, step, samples));
  }
  std::string TickAfterFailures(int failures) { return Note(d_.TickAfterFailures(failures)); }
  std::string Note(std::string told) {
    for (const Action& action : d_.last) {
      if (const auto* commit = std::get_if<action::CommitRound>(&action))
        attempt_ = commit->attempt;
    }
    return told;
  }
  // The servers' answer to the newest commitment.
  std::string Committed(absl::Status status = absl::OkStatus()) {
    return d_.Step(event::RoundCommitted{attempt_, CallError::Of(std::move(status)), {1, 1}});
  }
  // The first of the two is lost, and another one has taken its place.
  void LoseServer() {
    d_.Step(event::DaemonDied{100, "killed"});
    d_.Join(pb::ROLE_PSSERVER, 200, 0);
    d_.Restored(2);
    d_.Routing(2, 2);
    d_.Installed(0, 10);
  }
  bool Runs(uint64_t function) const {
    const FunctionQueue::Function* const f = d_.core.queue().Find(FunctionId(function));
    return f != nullptr && f->worker.has_value();
  }

  CoreDriver d_{2};
  uint64_t attempt_ = 0;
};

}  // namespace mu::testing
