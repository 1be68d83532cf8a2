// Which daemons are to suffer what and when:
// --chaos="worker:kill:every=3s,ps:kill:every=20s,worker:hang:every=30s,seed=7".
//
// A rule is ROLE:ACTION:every=TIME[:for=TIME][:count=N]. Roles: worker, ps. Actions: kill
// (SIGKILL), hang (SIGSTOP, and SIGCONT after `for`, 15 s by default), drain (SIGTERM). Intervals
// vary between a half and three halves of `every`; `count` ends a rule after so many. The same text
// gives the same events. Pure: no clock, thread or process.
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
    absl::Duration next;
    SplitMix random{0};
  };
  static absl::StatusOr<Rule> ParseRule(const std::string& text);
  static absl::Duration Interval(Rule* rule) { return rule->every * (0.5 + rule->random.Unit()); }

  std::vector<Rule> rules_;
};

}  // namespace mu
