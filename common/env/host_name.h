// The name of this machine, as other machines of its network may know it.
#pragma once

#include <string>

namespace mu {

std::string HostName();

}  // namespace mu
