#include "coordinator/training/server_notes.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace mu {
namespace {

constexpr char kRestored[] = "restored from ";

bool IsServer(const MemberFailure& failure) { return failure.role == pb::ROLE_PSSERVER; }

std::string Loss(const MemberFailure& failure) {
  return absl::StrFormat("psserver %d was lost (%s) after %.1f s", failure.index, failure.kind,
                         failure.at_seconds);
}

// The message names what it was restored from behind what happened to it (core/failure_log.cc).
// How its process ended may follow.
std::string RestoredFrom(const std::string& message) {
  const size_t from = message.rfind(kRestored);
  if (from == std::string::npos) return "";
  return absl::StrCat(", ", message.substr(from, message.find_first_of(";\n", from) - from));
}

}  // namespace

std::string NoteOfLoss(const MemberFailure& failure) {
  if (!IsServer(failure) || failure.kind == "left" || failure.recovered_seconds >= 0) return "";
  return absl::StrCat(Loss(failure), "; training waits until it is replaced");
}

std::string NoteOfRecovery(const MemberFailure& failure) {
  if (!IsServer(failure) || failure.recovered_seconds < 0) return "";
  const uint64_t steps = failure.steps_repeated;
  if (failure.kind == "left" && steps == 0) return "";
  return absl::StrCat(
      Loss(failure), absl::StrFormat(" and replaced %.1f s later", failure.recovered_seconds),
      RestoredFrom(failure.message),
      steps > 0 ? absl::StrCat("; ", steps, steps == 1 ? " step runs again" : " steps run again")
                : "");
}

}  // namespace mu
