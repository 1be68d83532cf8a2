// Which daemons are to suffer what and when:
// --chaos="worker:kill:every=3s,ps:kill:every=20s,worker:hang:every=30s,seed=7".
//
// A rule is ROLE:ACTION:every=TIME[:for=TIME][:count=N]. Roles: worker, ps. Actions: kill
// (SIGKILL), hang (SIGSTOP, and SIGCONT after `for`, 15 s by default), drain (SIGTERM). Intervals
// vary between a half and three halves of `every`; `count` ends a rule after so many. The same text
// gives the same events. "after=TIME" leaves out what comes before and begins there, so that runs
// of which each is shorter than `every` can share one plan. Pure: no clock, thread or process.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/hash.h"

namespace mu {

struct ChaosEvent {
  enum Action { kKill, kHang, kDrain };
  absl::Duration at;  // since the beginning
  bool worker = false;
  Action action = kKill;
  absl::Duration duration;  // of a hang
  uint64_t choice = 0;      // which daemon: modulo the number of those that are up
};

class ChaosPlan {
 public:
  // INVALID_ARGUMENT says what is wrong with which rule, and what a rule looks like.
  static absl::StatusOr<ChaosPlan> Parse(const std::string& text);

  // The next event in time; nothing when all rules have ended.
  std::optional<ChaosEvent> Next();

 private:
  struct Rule {
    bool worker = false;
    ChaosEvent::Action action = ChaosEvent::kKill;
    absl::Duration every;
    absl::Duration duration = absl::Seconds(15);
    uint64_t left = UINT64_MAX;
    uint64_t seed = 0;
    uint64_t number = 0;  // of its next event

    // Each event has a place of its own, `every` after the one before, and is at most a quarter of
    // that away from it. So a plan can begin anywhere without going through what comes before.
    absl::Duration At() const {
      return every * (0.75 + number + SplitMix(seed + number).Unit() / 2);
    }
  };
  static absl::StatusOr<Rule> ParseRule(const std::string& text);

  std::vector<Rule> rules_;
  absl::Duration after_;
};

}  // namespace mu
