// The staleness of a push as its request says it: which gradients have clocks, and which clocks a
// pull is answered with. Pure.
#pragma once

#include "proto/psserver.pb.h"
#include "psserver/core/server_core.h"

namespace mu {

// Empty if the function does not ask how late its gradients are.
PushStaleness StalenessOf(const muster::PushRequest& request);

// The clocks of all that the request reads. Before it is read.
void FillClocks(const ServerCore& core, const muster::PullRequest& request,
                muster::ClocksProto* clocks);

}  // namespace mu
