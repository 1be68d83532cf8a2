#include "coordinator/cli/config_override.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace mu {

void ApplyOverride(const std::string& assignment, ConfigNode* root, ProblemList* problems) {
  const size_t equals = assignment.find('=');
  const std::string path = assignment.substr(0, equals);
  const Place place = {absl::StrCat("--set ", path), 0, 0};
  if (equals == std::string::npos) {
    problems->Add(place, "there is no value", "write --set key.key=value");
    return;
  }
  const std::vector<std::string> keys = absl::StrSplit(path, '.');
  ConfigNode* node = root;
  for (const std::string& key : keys) {
    if (key.empty()) {
      problems->Add(place, "there is an empty key in it", "write --set key.key=value");
      return;
    }
    if (node->kind == ConfigNode::kInvalid) return;
    if (node->kind == ConfigNode::kList || node->kind == ConfigNode::kScalar) {
      problems->Add(place, absl::StrCat("`", key, "` cannot be set inside of ", node->Describe()),
                    "set the whole of it, for example --set a.b=[1, 2]");
      return;
    }
    if (node->kind == ConfigNode::kNull) {
      node->kind = ConfigNode::kMap;
      if (node->place.source.empty()) node->place = place;
    }
    ConfigNode* child = node->Find(key);
    if (child == nullptr) {
      node->entries.push_back({key, place, ConfigNode()});
      child = &node->entries.back().value;
    }
    if (&key == &keys.back()) {
      *child = ParseConfig(assignment.substr(equals + 1), place.source, /*whole=*/true, problems);
      for (ConfigEntry& entry : node->entries) {
        if (entry.key == key) entry.key_place = place;
      }
    }
    node = child;
  }
}

}  // namespace mu
