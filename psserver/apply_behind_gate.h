// The order in which the first copy of an update is checked, applied and remembered.
#pragma once

#include "absl/status/status.h"
#include "psserver/store/cut_gate.h"

namespace mu {

// `check` runs before the gate, since a cut need not wait for it: it changes nothing. If it gives
// OK, `apply` and `finish(its status)` run behind the gate, so that a cut has both or neither.
// Otherwise `finish` gets the error. Returns what `finish` got.
template <typename Check, typename Apply, typename Finish>
absl::Status ApplyBehindGate(CutGate* gate, const Check& check, const Apply& apply,
                             const Finish& finish) {
  absl::Status status = check();
  if (!status.ok()) {
    finish(status);
    return status;
  }
  CutGate::Change change(gate);
  status = apply();
  finish(status);
  return status;
}

}  // namespace mu
