#include "coordinator/cli/environment.h"

#include <cstdlib>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace mu {
namespace {

bool IsName(absl::string_view name) {
  if (name.empty() || absl::ascii_isdigit(name[0])) return false;
  for (const char c : name) {
    if (!absl::ascii_isalnum(c) && c != '_') return false;
  }
  return true;
}

absl::StatusOr<std::string> ValueOf(absl::string_view inside, const Environment& environment) {
  const size_t mark = inside.find(":-");
  const std::string name(inside.substr(0, mark));
  if (!IsName(name)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "`${", inside.substr(0, 60),
        "}` does not name an environment variable; write ${NAME} or ${NAME:-default}"));
  }
  const std::optional<std::string> value = environment(name);
  if (mark != absl::string_view::npos) {
    return value.has_value() && !value->empty() ? *value : std::string(inside.substr(mark + 2));
  }
  if (value.has_value()) return *value;
  return absl::InvalidArgumentError(absl::StrCat("the environment variable ", name,
                                                 " is not set; set it, or give a default as in ${",
                                                 name, ":-default}"));
}

}  // namespace

Environment ProcessEnvironment() {
  return [](const std::string& name) -> std::optional<std::string> {
    const char* value = std::getenv(name.c_str());
    if (value == nullptr) return std::nullopt;
    return value;
  };
}

absl::StatusOr<std::string> ExpandEnvironment(const std::string& text,
                                              const Environment& environment) {
  std::string result;
  size_t at = 0;
  while (true) {
    const size_t begin = text.find("${", at);
    if (begin == std::string::npos) return result + text.substr(at);
    if (begin > at && text[begin - 1] == '$') {
      result += text.substr(at, begin - 1 - at) + "${";
      at = begin + 2;
      continue;
    }
    const size_t end = text.find('}', begin);
    if (end == std::string::npos) {
      return absl::InvalidArgumentError(
          "`${` has no `}`; close it, or write `$${` for the characters themselves");
    }
    const absl::StatusOr<std::string> value =
        ValueOf(absl::string_view(text).substr(begin + 2, end - begin - 2), environment);
    if (!value.ok()) return value.status();
    result += text.substr(at, begin - at) + *value;
    at = end + 1;
  }
}

void ExpandEnvironment(const Environment& environment, ConfigNode* node, ProblemList* problems) {
  for (ConfigNode& item : node->items) ExpandEnvironment(environment, &item, problems);
  for (ConfigEntry& entry : node->entries) ExpandEnvironment(environment, &entry.value, problems);
  if (node->kind != ConfigNode::kScalar || node->text.find("${") == std::string::npos) return;
  const bool all_variable =
      node->text.rfind("${", 0) == 0 && node->text.find('}') == node->text.size() - 1;
  absl::StatusOr<std::string> text = ExpandEnvironment(node->text, environment);
  if (!text.ok()) {
    problems->Add(node->place, text.status());
    node->kind = ConfigNode::kInvalid;
    return;
  }
  node->text = *std::move(text);
  if (all_variable) node->quoted = false;
}

}  // namespace mu
