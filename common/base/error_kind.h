// What the processes of a cluster say of their errors to each other: whose fault they are (the kind
// in ErrorDetail, see status.h) and what is wrong with a worker's input.
#pragma once

#include "absl/status/status.h"
#include "common/base/status.h"
#include "proto/input_fault.pb.h"

namespace mu {

// Gives an error a kind and says whose it is, unless it has a kind. A service gives ERROR_USER to
// what is wrong wherever it runs.
absl::Status WithKind(absl::Status status, pb::ErrorKind kind, pb::Role role = pb::ROLE_UNSPECIFIED,
                      uint32_t index = 0);

// For transports: an error as another process sent it. What its sender gave no kind to is
// ERROR_MACHINE: another process may do better.
absl::Status FromWire(absl::Status status);

// Codes of what a machine, the network or memory does, and no program or data: UNAVAILABLE,
// DEADLINE_EXCEEDED, CANCELLED, ABORTED, RESOURCE_EXHAUSTED, INTERNAL, UNKNOWN.
bool IsMachineCode(absl::StatusCode code);

// Attaches the fault of a worker's input, and with it ERROR_MACHINE of ROLE_WORKER.
absl::Status WithInputFault(absl::Status status, pb::InputFault::Kind kind, uint32_t file);
// NONE if there is none.
pb::InputFault InputFaultOf(const absl::Status& status);

}  // namespace mu
