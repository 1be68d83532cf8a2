#include "common/records/record_parser.h"

#include "absl/strings/str_cat.h"

namespace mu {

bool WrongField(absl::string_view column, absl::string_view text, absl::string_view problem,
                std::string* error) {
  *error = absl::StrCat("column ", column, ": \"", text.substr(0, kShownText), "\" ", problem);
  return false;
}

}  // namespace mu
