#include "common/process/fast_bins.h"

#include <malloc.h>

namespace mu {

// Sanitizers have allocators of their own, for which it does nothing.
void DisableFastBins() { ::mallopt(M_MXFAST, 0); }

}  // namespace mu
