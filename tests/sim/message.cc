#include "tests/sim/message.h"

#include "absl/strings/str_cat.h"
#include "common/base/error_kind.h"

namespace mu::sim {
namespace {

// In the order of the enumerations.
constexpr const char* kKinds[] = {"Register",    "Heartbeat",  "Leave",   "Configure",
                                  "Pull",        "Push",       "Save",    "Restore",
                                  "Fence",       "CancelRuns", "Install", "Run",
                                  "cancels run", "answer",     "result",  "run ended"};
static_assert(std::size(kKinds) == static_cast<size_t>(Kind::kRunEnded) + 1);
constexpr const char* kCodes[] = {
    "",         " UNAVAILABLE", " SERVER GONE", " HANDED BACK", " STALE",  " NOT INSTALLED",
    " REFUSED", " BAD FILE",    " CANNOT READ", " DISK FULL",   " GARBAGE"};
static_assert(std::size(kCodes) == static_cast<size_t>(Code::kGarbage) + 1);

const char* NameOf(Kind kind) { return kKinds[static_cast<size_t>(kind)]; }

}  // namespace

const absl::Status& StatusOf(Code code) {
  const auto with = [](absl::StatusCode status, pb::ErrorKind kind, pb::Role role) {
    return WithKind(absl::Status(status, "simulated"), kind, role);
  };
  using S = absl::StatusCode;
  static const absl::Status statuses[] = {
      absl::OkStatus(),
      absl::UnavailableError("simulated"),
      with(S::kUnavailable, pb::ERROR_MACHINE, pb::ROLE_PSSERVER),
      absl::OkStatus(),
      with(S::kFailedPrecondition, pb::ERROR_STALE, pb::ROLE_PSSERVER),
      with(S::kFailedPrecondition, pb::ERROR_NOT_INSTALLED, pb::ROLE_WORKER),
      with(S::kInvalidArgument, pb::ERROR_USER, pb::ROLE_COORDINATOR),
      with(S::kDataLoss, pb::ERROR_MACHINE, pb::ROLE_PSSERVER),
      with(S::kUnavailable, pb::ERROR_MACHINE, pb::ROLE_PSSERVER),
      with(S::kResourceExhausted, pb::ERROR_MACHINE, pb::ROLE_PSSERVER),
      absl::InternalError("simulated")};
  static_assert(std::size(statuses) == std::size(kCodes));
  return statuses[static_cast<size_t>(code)];
}

Code CodeOf(const absl::Status& status) {
  if (status.ok()) return Code::kOk;
  switch (KindOf(status)) {
    case pb::ERROR_STALE:
      return Code::kStale;
    case pb::ERROR_NOT_INSTALLED:
      return Code::kNotInstalled;
    case pb::ERROR_USER:
      return Code::kRefused;
    default:
      const auto detail = DetailOf(status);
      const bool server = detail.has_value() && detail->role() == pb::ROLE_PSSERVER;
      return server ? Code::kServerGone : Code::kMachine;
  }
}

std::string Describe(const Message& m) {
  std::string text = NameOf(m.kind);
  if (m.kind == Kind::kReply) absl::StrAppend(&text, " to ", NameOf(m.request));
  absl::StrAppend(&text, kCodes[static_cast<size_t>(m.code)]);
  const auto number = [&text](const char* name, uint64_t value) {
    if (value != 0) absl::StrAppend(&text, " ", name, " ", value);
  };
  number("function", m.function);
  number("run", m.run);
  if (m.kind == Kind::kPush || m.kind == Kind::kStepResult)
    absl::StrAppend(&text, " step ", m.step);
  if (m.kind == Kind::kPush) absl::StrAppend(&text, " record ", m.records[0]);
  for (int s = 0; s < kMaxServers && m.kind == Kind::kStepResult; ++s) {
    if (m.step_updates[s] + m.step_inherited[s] == 0) continue;
    absl::StrAppend(&text, ", server ", s, ": ", m.step_updates[s], " updates ",
                    m.step_inherited[s], " inherited");
  }
  if (m.kind == Kind::kRun) absl::StrAppend(&text, " steps ", m.first_step, " to ", m.steps);
  number("checkpoint", m.checkpoint);
  absl::StrAppend(&text, m.keep_state ? " keep state" : "", m.repeated ? " repeated" : "");
  number("epoch", m.epoch);
  number("generation", m.generation);
  number("low water", m.low_water);
  absl::StrAppend(&text, m.copy ? " (second copy)" : "");
  return text;
}

}  // namespace mu::sim
