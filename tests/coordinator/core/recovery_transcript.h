// Events of a recovery and the actions that follow, as text.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "coordinator/core/recovery.h"
#include "gtest/gtest.h"

namespace mu::testing {

// "restore server 1 from checkpoint 3 in generation 2": a line for each server of a round.
inline std::vector<std::string> ToStrings(const RecoveryAction& action) {
  using Kind = RecoveryAction::Kind;
  const std::string from = action.checkpoint == kInitialValues
                               ? "initial values"
                               : absl::StrCat("checkpoint ", action.checkpoint.value());
  const std::string in = absl::StrCat(" in generation ", action.generation.value());
  switch (action.kind) {
    case Kind::kPause:
      return {"pause"};
    case Kind::kRollBack:
      return {absl::StrCat("roll back to ", from)};
    case Kind::kRestore: {
      std::vector<std::string> lines;
      for (const bool keep : action.keep) {
        const std::string server = absl::StrCat(" server ", lines.size());
        lines.push_back(keep ? absl::StrCat("keep", server, in)
                             : absl::StrCat("restore", server, " from ", from, in));
      }
      return lines;
    }
    case Kind::kTakeCheckpoint:
      return {absl::StrCat("take a checkpoint", in)};
    case Kind::kLetGo:
      return {absl::StrCat("let server ", action.server, " go")};
    case Kind::kReplace:
      return {absl::StrCat("replace server ", action.server)};
    case Kind::kResume:
      return {absl::StrCat("resume", in)};
    case Kind::kGiveUp:
      return {"give up"};
  }
  return {"?"};
}

// Writes down each event and, indented, what is to be done.
class RecoveryTranscript {
 public:
  explicit RecoveryTranscript(Recovery::Options options) : recovery(options) {}
  void operator()(const std::string& event, const Recovery::Actions& actions = {}) {
    absl::StrAppend(&text, event, "\n");
    for (const RecoveryAction& action : actions) {
      for (const std::string& line : ToStrings(action)) absl::StrAppend(&text, "  ", line, "\n");
    }
  }
  void Start() { (*this)("start", recovery.Start(Generation(0), {kInitialValues})); }
  void Committed(uint64_t n) {
    recovery.Committed(CheckpointNumber(n));
    (*this)(absl::StrCat("committed ", n));
  }
  void Lost(uint32_t server) {
    (*this)(absl::StrCat("lost ", server), recovery.ServerLost(server));
  }
  void Ready(uint32_t server) {
    (*this)(absl::StrCat("ready ", server), recovery.ServerReady(server));
  }
  void Done(uint64_t generation) {
    (*this)(absl::StrCat("done in ", generation), recovery.RestoreDone(Generation(generation)));
  }
  void Bad(uint64_t generation) {
    (*this)(absl::StrCat("bad checkpoint in ", generation),
            recovery.RestoreFailed(Generation(generation), RestoreFault::kCheckpoint));
  }
  void AtFault(uint32_t server, uint64_t generation) {
    (*this)(absl::StrCat("server ", server, " at fault in ", generation),
            recovery.RestoreFailed(Generation(generation), RestoreFault::kServer, server));
  }

  Recovery recovery;
  std::string text = "\n";
};

}  // namespace mu::testing
