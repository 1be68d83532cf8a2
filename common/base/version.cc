#include "common/base/version.h"

namespace mu {

std::string Version() { return MUSTER_VERSION; }

}  // namespace mu
