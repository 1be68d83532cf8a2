#include "common/process/descriptor_limit.h"

#include <sys/resource.h>

namespace mu {

void RaiseDescriptorLimit() {
  rlimit limit = {};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= limit.rlim_max) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);  // if a sandbox forbids it, the process has what it has
}

}  // namespace mu
