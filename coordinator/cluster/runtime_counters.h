// What happens to a job and is counted for /metrics. Every count is there from the beginning: a
// rate over one that appears with its first event would miss that.
#pragma once

#include <string>

#include "common/base/status.h"
#include "common/env/tls_files.h"
#include "common/obs/telemetry.h"

namespace mu {

class RuntimeCounters {
 public:
  explicit RuntimeCounters(Telemetry* telemetry) : telemetry_(telemetry) {
    for (const pb::Role role : {pb::ROLE_WORKER, pb::ROLE_PSSERVER}) {
      for (const char* kind : {"died", "unreachable", "unreadable", "silent", "replaced", "left",
                               "hangs", "set_aside", "cannot_read"})
        Lost(role, kind);
    }
    for (const char* kind : {"user", "machine"}) Failed(kind);
  }

  // `kind`: see MemberFailure.
  Counter* Lost(pb::Role role, const std::string& kind) const {
    return telemetry_->counter("coordinator.members_lost",
                               "Daemons lost, by what happened to them (docs/report.md)",
                               {{"role", NameOf(role)}, {"kind", kind}});
  }
  // Whose error ended a function: "user", or that of a "machine".
  Counter* Failed(const std::string& kind) const {
    return telemetry_->counter("coordinator.function_errors", "Functions that ended with an error",
                               {{"kind", kind}});
  }
  Counter* FeedsBroken() const { return feeds_broken_; }
  Counter* CheckpointFailures() const { return checkpoint_failures_; }
  Timer* Checkpoint() const { return checkpoint_; }
  Timer* Recovery() const { return recovery_; }

 private:
  Telemetry* const telemetry_;
  Counter* const feeds_broken_ = telemetry_->counter(
      "coordinator.feeds_broken", "Connections to workers that broke and were opened again");
  Counter* const checkpoint_failures_ = telemetry_->counter(
      "coordinator.checkpoint_failures", "Checkpoints that were begun and did not become complete");
  Timer* const checkpoint_ = telemetry_->timer("coordinator.checkpoint",
                                               "Checkpoints, from the first cut to the manifest");
  Timer* const recovery_ = telemetry_->timer(
      "coordinator.recovery", "Recoveries of servers, from the pause until all serve");
};

}  // namespace mu
