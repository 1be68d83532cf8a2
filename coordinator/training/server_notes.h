// What a job says while it runs of parameter servers that were lost, since that holds up training
// and makes steps run again. Pure.
#pragma once

#include <string>

#include "coordinator/core/failure_list.h"

namespace mu {

// "psserver 1 was lost (died) after 12.3 s; training waits until it is replaced". Empty for
// workers, of which the others do the work, for a server that left, and if it is replaced already.
std::string NoteOfLoss(const MemberFailure& failure);

// "psserver 1 was lost (died) after 12.3 s and replaced 0.4 s later, restored from FOLDER; 1193
// steps run again". Empty for workers, for a server that is not replaced yet, and for one that left
// and cost nothing. The steps of servers that were lost together are in that of the first.
std::string NoteOfRecovery(const MemberFailure& failure);

}  // namespace mu
