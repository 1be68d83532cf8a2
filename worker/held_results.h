// Results of a run's steps that go to the coordinator together.
#pragma once

#include "common/rpc/transport.h"
#include "proto/worker.pb.h"

namespace mu {

// Sends results in replies of at most kMessageBytes each, or of one result that is larger, in their
// order. Returns the last reply, which the caller sends; it may be empty.
muster::RunReply SendAllButLast(ServerCall& call, muster::RunReply held);

}  // namespace mu
