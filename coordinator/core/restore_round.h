// What the servers have to do together: a generation of their state, and what each brings into it.
#pragma once

#include <cstdint>
#include <vector>

#include "common/base/ids.h"
#include "coordinator/core/checkpoint_number.h"

namespace mu {

struct RestoreRound {
  struct Server {
    uint32_t index = 0;
    bool keep = false;  // its state; else it loads the checkpoint
  };
  Generation generation;
  CheckpointNumber checkpoint;
  std::vector<Server> servers;  // all of them, by index
};

}  // namespace mu
