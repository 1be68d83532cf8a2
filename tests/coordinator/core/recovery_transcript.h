// Events of a recovery and the actions that follow, as text.
#pragma once

#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "coordinator/core/recovery.h"
#include "gtest/gtest.h"

namespace mu::testing {

// Writes down each event and, indented, what is to be done.
class RecoveryTranscript {
 public:
  explicit RecoveryTranscript(Recovery::Options options) : recovery(options) {}
  void operator()(const std::string& event, const Recovery::Actions& actions = {}) {
    absl::StrAppend(&text, event, "\n");
    for (const RecoveryAction& action : actions)
      absl::StrAppend(&text, "  ", ToString(action), "\n");
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
  void Done(uint32_t server, uint64_t generation) {
    (*this)(absl::StrCat("done ", server, " in ", generation),
            recovery.RestoreDone(server, Generation(generation)));
  }
  void Bad(uint32_t server, uint64_t generation) {
    (*this)(
        absl::StrCat("bad checkpoint for ", server, " in ", generation),
        recovery.RestoreFailed(server, Generation(generation), Recovery::Failure::kBadCheckpoint));
  }
  void AtFault(uint32_t server, uint64_t generation) {
    (*this)(
        absl::StrCat("server ", server, " at fault in ", generation),
        recovery.RestoreFailed(server, Generation(generation), Recovery::Failure::kServerAtFault));
  }

  Recovery recovery;
  std::string text = "\n";
};

}  // namespace mu::testing
