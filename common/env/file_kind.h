// What lies at a path, where that matters before it is opened.
#pragma once

#include <string>

namespace mu {

// Whether something is there that is neither a file nor a folder: a pipe, a socket or a device. To
// open such a thing, or to read it, may wait for ever.
bool IsSpecialFile(const std::string& path);

// What the symbolic link at `path` names, as it is written in the link; empty if there is no link.
std::string LinkTarget(const std::string& path);

}  // namespace mu
