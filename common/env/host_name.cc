#include "common/env/host_name.h"

#include <unistd.h>

#include "common/base/text.h"

namespace mu {

std::string HostName() {
  char name[256] = {};
  return gethostname(name, sizeof(name) - 1) == 0 ? ValidUtf8(name) : "unknown";
}

}  // namespace mu
