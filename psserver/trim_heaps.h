// Gives the free memory of the heaps of all threads back to the system.
#pragma once

namespace mu {

// Takes the heaps' locks for milliseconds: after what freed much, not after each call.
void TrimHeaps();

}  // namespace mu
