#include "tests/sim/message.h"

#include "absl/strings/str_cat.h"
#include "common/base/status.h"

namespace mu::sim {

std::string Describe(const Message& m) {
  // In the order of the enumeration.
  static constexpr const char* kKinds[] = {
      "Register",  "Heartbeat",        "Leave",    "Configure", "Pull",  "Push",        "Save",
      "Restore",   "CommitRound",      "LoadView", "DropView",  "Fence", "CancelRuns",  "Scan",
      "Install",   "answer",           "connects", "connected", "Run",   "cancels run", "result",
      "run ended", "connection broken"};
  static_assert(std::size(kKinds) == static_cast<size_t>(Kind::kFeedBroken) + 1);
  const auto name = [](Kind kind) { return kKinds[static_cast<size_t>(kind)]; };
  std::string text = name(m.kind);
  const auto number = [&text](const char* name, uint64_t value) {
    if (value != 0) absl::StrAppend(&text, " ", name, " ", value);
  };
  if (m.kind == Kind::kReply) absl::StrAppend(&text, " to ", name(m.request));
  if (!m.status.ok())
    absl::StrAppend(&text, " ", pb::ErrorKind_Name(KindOf(m.status)), ": ", m.status.message());
  number("function", m.function);
  number("run", m.run);
  number("connection", m.connection);
  number("number", m.number);
  if (m.kind == Kind::kPush || m.kind == Kind::kStepResult)
    absl::StrAppend(&text, " step ", m.step);
  if (m.kind == Kind::kPush) absl::StrAppend(&text, " record ", m.records[0]);
  for (int s = 0; s < kMaxServers && m.kind == Kind::kStepResult; ++s) {
    if (m.step_updates[s] + m.step_inherited[s] == 0) continue;
    absl::StrAppend(&text, ", server ", s, ": ", m.step_updates[s], " updates ",
                    m.step_inherited[s], " inherited");
  }
  if (m.kind == Kind::kRun) absl::StrAppend(&text, " steps ", m.first_step, " to ", m.steps);
  number("round", m.round);
  number("checkpoint", m.checkpoint);
  number("view", m.view);
  absl::StrAppend(&text, m.keep_state ? " keep state" : "", m.repeated ? " repeated" : "",
                  m.handed_back ? " handed back" : "");
  number("epoch", m.epoch);
  number("generation", m.generation);
  number("low water", m.low_water);
  number("job", m.job == kJob ? 0 : m.job);
  absl::StrAppend(&text, m.copy ? " (second copy)" : "");
  return text;
}

}  // namespace mu::sim
