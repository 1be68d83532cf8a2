// Text that came from outside, made fit for messages.
#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace mu {

// The text with every byte that is no valid UTF-8 replaced by '?': protobuf's strings and JSON take
// nothing else.
std::string ValidUtf8(absl::string_view text);

}  // namespace mu
