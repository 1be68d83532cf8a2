// How many files and connections a process may have open.
#pragma once

namespace mu {

// Raises the soft limit to the hard one, as every process of ours does when it starts: the usual
// soft limit of 1024 is for programs that use select(). Processes that are started later inherit
// it.
void RaiseDescriptorLimit();

}  // namespace mu
