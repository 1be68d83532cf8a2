// How a log says a status.
#pragma once

#include <string>

#include "absl/status/status.h"

namespace mu {

// "CODE: message". Without the details that our services attach: their bytes are no text.
inline std::string StatusText(const absl::Status& status) {
  return status.ToString(absl::StatusToStringMode::kWithNoExtraData);
}

}  // namespace mu
