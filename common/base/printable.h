// Text that came from outside, made fit for a terminal and a line of a log.
#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace mu {

// The text as valid UTF-8 (ValidUtf8) on one line, with control characters but tabs written as
// escapes: "\n", "\x1b", "\u009b". What a data file holds can neither end a line of the log nor
// give a terminal orders.
std::string Printable(absl::string_view text);

// The same for a text of several lines: line ends stay.
std::string PrintableLines(absl::string_view text);

}  // namespace mu
