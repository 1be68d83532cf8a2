#include "coordinator/launch/chaos_plan.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/base/status.h"

namespace mu {
namespace {

constexpr absl::Duration kLongest = absl::Hours(24 * 365 * 100);  // whose events have numbers
constexpr double kBefore = 2;  // events between whose places and `after` others may be

absl::Status Wrong(const std::string& rule, const std::string& what) {
  return absl::InvalidArgumentError(absl::StrCat(
      "chaos rule `", rule, "`: ", what,
      "; write ROLE:ACTION:every=TIME, such as worker:kill:every=3s, with role worker "
      "or ps, action kill, hang or drain, and perhaps :for=10s (of a hang) or :count=20"));
}

absl::StatusOr<absl::Duration> ParseTime(const std::string& rule, const std::string& key,
                                         const std::string& text) {
  absl::Duration time;
  if (!absl::ParseDuration(text, &time) || time < absl::Milliseconds(1)) {
    return Wrong(rule, absl::StrCat(key, " must be a time such as 500ms or 3s, not `", text, "`"));
  }
  return time;
}

}  // namespace

absl::StatusOr<ChaosPlan::Rule> ChaosPlan::ParseRule(const std::string& text) {
  const std::vector<std::string> parts = absl::StrSplit(text, ':');
  if (parts.size() < 3) return Wrong(text, "it has too few parts");
  Rule rule;
  if (parts[0] != "worker" && parts[0] != "ps")
    return Wrong(text, absl::StrCat("there is no role `", parts[0], "`"));
  rule.worker = parts[0] == "worker";
  if (parts[1] == "kill") {
    rule.action = ChaosEvent::kKill;
  } else if (parts[1] == "hang") {
    rule.action = ChaosEvent::kHang;
  } else if (parts[1] == "drain") {
    rule.action = ChaosEvent::kDrain;
  } else {
    return Wrong(text, absl::StrCat("there is no action `", parts[1], "`"));
  }
  for (size_t i = 2; i < parts.size(); ++i) {
    const std::vector<std::string> pair = absl::StrSplit(parts[i], absl::MaxSplits('=', 1));
    if (pair.size() != 2) return Wrong(text, absl::StrCat("`", parts[i], "` is no KEY=VALUE"));
    if (pair[0] == "every") {
      MU_ASSIGN_OR_RETURN(rule.every, ParseTime(text, "every", pair[1]));
    } else if (pair[0] == "for" && rule.action == ChaosEvent::kHang) {
      MU_ASSIGN_OR_RETURN(rule.duration, ParseTime(text, "for", pair[1]));
    } else if (pair[0] == "count") {
      if (!absl::SimpleAtoi(pair[1], &rule.left) || rule.left == 0)
        return Wrong(text, "count must be a number from 1");
    } else {
      return Wrong(text, absl::StrCat("there is no key `", pair[0], "` here"));
    }
  }
  if (rule.every == absl::ZeroDuration()) return Wrong(text, "`every` is missing");
  return rule;
}

absl::StatusOr<ChaosPlan> ChaosPlan::Parse(const std::string& text) {
  ChaosPlan plan;
  uint64_t seed = 1;
  for (absl::string_view part : absl::StrSplit(text, ',', absl::SkipWhitespace())) {
    const std::string rule(absl::StripAsciiWhitespace(part));
    if (absl::string_view number = rule; absl::ConsumePrefix(&number, "seed=")) {
      if (!absl::SimpleAtoi(number, &seed)) return Wrong(rule, "seed must be a whole number");
      continue;
    }
    if (absl::string_view time = rule; absl::ConsumePrefix(&time, "after=")) {
      if (!absl::ParseDuration(time, &plan.after_) || plan.after_ < absl::ZeroDuration() ||
          plan.after_ > kLongest) {
        return Wrong(rule, "after must be a time such as 90s or 1h");
      }
      continue;
    }
    MU_ASSIGN_OR_RETURN(Rule parsed, ParseRule(rule));
    plan.rules_.push_back(parsed);
  }
  if (plan.rules_.empty()) return Wrong(text, "there is none");
  for (size_t i = 0; i < plan.rules_.size(); ++i) {
    Rule& rule = plan.rules_[i];
    rule.seed = Mix64(Mix64(seed) + i);
    rule.number =
        static_cast<uint64_t>(std::max(0.0, absl::FDivDuration(plan.after_, rule.every) - kBefore));
    while (rule.At() < plan.after_) ++rule.number;
  }
  return plan;
}

std::optional<ChaosEvent> ChaosPlan::Next() {
  Rule* first = nullptr;
  for (Rule& rule : rules_) {
    if (rule.left > 0 && (first == nullptr || rule.At() < first->At())) first = &rule;
  }
  if (first == nullptr) return std::nullopt;
  const ChaosEvent event{first->At() - after_, first->worker, first->action, first->duration,
                         Mix64(first->seed ^ Mix64(first->number))};
  --first->left;
  ++first->number;
  return event;
}

}  // namespace mu
