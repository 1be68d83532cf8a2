#include "coordinator/cli/notices.h"

#include <cstdio>

#include "absl/strings/ascii.h"
#include "absl/strings/str_format.h"
#include "common/base/printable.h"
#include "common/obs/log.h"

namespace mu {

void Notices::Note(const std::string& text) const {
  if (json_) {
    MU_LOG(WARN, "{}", text);
  } else {
    absl::FPrintF(stderr, "note: %s\n", PrintableLines(text));
  }
}

void Notices::Error(const std::string& text) const {
  if (json_) {
    MU_LOG(ERROR, "{}", text);
  } else {
    absl::FPrintF(stderr, "error: %s\n", PrintableLines(text));
  }
}

void Notices::Problems(const std::string& text) const {
  if (json_) {
    MU_LOG(ERROR, "{}", absl::StripTrailingAsciiWhitespace(text));
  } else {
    absl::FPrintF(stderr, "%s", PrintableLines(text));
  }
}

}  // namespace mu
