// A setting of glibc's allocator for processes that handle many small messages.
#pragma once

namespace mu {

// Switches the allocator's fast bins off, as every process of ours does when it starts. A free
// piece in such a bin is not merged with its neighbours. Each larger request or release looks
// through all of these bins first and merges everything (malloc_consolidate). In a process through
// which hundreds of thousands of small messages pass, that costs more than the bins save: each
// thread keeps its own cache of small pieces anyway.
//
// Call before other threads are started. A program of your own that is the coordinator has the
// setting that it was started with: GLIBC_TUNABLES=glibc.malloc.mxfast=0 does the same.
void DisableFastBins();

}  // namespace mu
