// In which generation of their state servers are told of variables and routing. Pure.
#pragma once

#include <cstdint>

namespace mu {

// `generation`, on the wire, is the one that begins. Where they load a state (a checkpoint, initial
// values) it begins with that, and what still belongs to the old one is refused from then on. They
// are told that it follows, so that one that is new serves nobody before.
inline uint64_t ConfigureGeneration(uint64_t generation, bool loads) {
  return loads ? generation - 1 : generation;
}

}  // namespace mu
