#include "coordinator/cli/config_node.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <nlohmann/json.hpp>
#include <sstream>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "coordinator/cli/scalar.h"

namespace mu {
namespace {

// Aliases let a small file name a huge or endless tree.
constexpr int kMaxDepth = 32;
constexpr int kMaxNodes = 100'000;

class Converter {
 public:
  Converter(const std::string& source, bool whole, ProblemList* problems)
      : source_(source), whole_(whole), problems_(problems) {}

  Place PlaceOf(const YAML::Mark& mark) const {
    if (whole_ || mark.is_null()) return {source_, 0, 0};
    return {source_, mark.line + 1, mark.column + 1};
  }

  ConfigNode Convert(const YAML::Node& from, int depth) {
    ConfigNode to;
    to.place = PlaceOf(from.Mark());
    if (depth > kMaxDepth || nodes_ >= kMaxNodes) {
      if (!too_large_) {
        problems_->Add(to.place,
                       absl::StrCat("the file is nested more than ", kMaxDepth,
                                    " deep or holds more than ", kMaxNodes, " values"),
                       "write it without aliases that contain themselves");
      }
      too_large_ = true;
      to.kind = ConfigNode::kInvalid;
      return to;
    }
    ++nodes_;
    const std::string& tag = from.Tag();
    if (!tag.empty() && tag != "?" && tag != "!") {
      problems_->Add(to.place, absl::StrCat("the tag `", tag, "` is not understood"),
                     "remove it: a key's type follows from its name");
    }
    switch (from.Type()) {
      case YAML::NodeType::Undefined:
      case YAML::NodeType::Null:
        break;
      case YAML::NodeType::Scalar:
        to.text = from.Scalar();
        to.quoted = tag == "!";
        to.kind = ConfigNode::kScalar;
        break;
      case YAML::NodeType::Sequence:
        to.kind = ConfigNode::kList;
        for (const auto& item : from) to.items.push_back(Convert(item, depth + 1));
        break;
      case YAML::NodeType::Map:
        to.kind = ConfigNode::kMap;
        for (const auto& pair : from) ConvertEntry(pair.first, pair.second, depth, &to);
        break;
    }
    return to;
  }

 private:
  void ConvertEntry(const YAML::Node& key, const YAML::Node& value, int depth, ConfigNode* to) {
    const Place place = PlaceOf(key.Mark());
    if (!key.IsScalar()) {
      problems_->Add(place, "a key must be a plain name", "write `key: value`");
      return;
    }
    if (key.Scalar() == "<<") {
      problems_->Add(place, "merge keys (`<<`) are not supported", "write the keys out");
      return;
    }
    for (const ConfigEntry& entry : to->entries) {
      if (entry.key != key.Scalar()) continue;
      problems_->Add(
          place,
          absl::StrCat("the key `", entry.key, "` stands here a second time, the first was at ",
                       entry.key_place.ToString()),
          "remove one of the two");
      return;
    }
    to->entries.push_back({key.Scalar(), place, Convert(value, depth + 1)});
  }

  const std::string& source_;
  const bool whole_;
  ProblemList* const problems_;
  int nodes_ = 0;
  bool too_large_ = false;
};

// Remembers where the documents' contents begin and forgets what they are.
class DocumentStarts final : public YAML::EventHandler {
 public:
  const std::vector<YAML::Mark>& marks() const { return marks_; }

  void OnDocumentStart(const YAML::Mark&) override { at_start_ = true; }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t) override { See(mark); }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override { See(mark); }
  void OnScalar(const YAML::Mark& mark, const std::string&, YAML::anchor_t,
                const std::string&) override {
    See(mark);
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t,
                       YAML::EmitterStyle::value) override {
    See(mark);
  }
  void OnSequenceEnd() override {}
  void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t,
                  YAML::EmitterStyle::value) override {
    See(mark);
  }
  void OnMapEnd() override {}

 private:
  void See(const YAML::Mark& mark) {
    if (at_start_) marks_.push_back(mark);
    at_start_ = false;
  }

  bool at_start_ = false;
  std::vector<YAML::Mark> marks_;
};

// Where the first two documents begin; fewer if there are fewer. YAML::LoadAll would not end where
// something follows a document without `---`: it finds empty documents there, again and again.
std::vector<YAML::Mark> DocumentsOf(const std::string& text) {
  std::istringstream stream(text);
  YAML::Parser parser(stream);
  DocumentStarts starts;
  while (starts.marks().size() < 2 && parser.HandleNextDocument(starts)) {
  }
  return starts.marks();
}

nlohmann::json ToJson(const ConfigNode& node) {
  switch (node.kind) {
    case ConfigNode::kNull:
    case ConfigNode::kInvalid:
      return nullptr;
    case ConfigNode::kList: {
      nlohmann::json list = nlohmann::json::array();
      for (const ConfigNode& item : node.items) list.push_back(ToJson(item));
      return list;
    }
    case ConfigNode::kMap: {
      nlohmann::json map = nlohmann::json::object();
      for (const ConfigEntry& entry : node.entries) map[entry.key] = ToJson(entry.value);
      return map;
    }
    case ConfigNode::kScalar:
      break;
  }
  if (node.quoted) return node.text;
  if (const auto flag = ParseBool(node.text); flag.ok()) return *flag;
  if (const auto whole = ParseInt(node.text); whole.ok()) return *whole;
  if (const auto real = ParseDouble(node.text); real.ok()) return *real;
  return node.text;
}

}  // namespace

const ConfigNode* ConfigNode::Find(const std::string& key) const {
  for (const ConfigEntry& entry : entries) {
    if (entry.key == key) return &entry.value;
  }
  return nullptr;
}

ConfigNode* ConfigNode::Find(const std::string& key) {
  return const_cast<ConfigNode*>(std::as_const(*this).Find(key));
}

std::string ConfigNode::Describe() const {
  switch (kind) {
    case kNull:
    case kInvalid:
      return "nothing";
    case kList:
      return "a list";
    case kMap:
      return "a map";
    case kScalar:
      break;
  }
  const std::string shown = text.size() <= 60 ? text : absl::StrCat(text.substr(0, 57), "...");
  return quoted ? absl::StrCat("the text \"", shown, "\"") : absl::StrCat("`", shown, "`");
}

ConfigNode ParseConfig(const std::string& text, const std::string& source, bool whole,
                       ProblemList* problems) {
  Converter converter(source, whole, problems);
  // The edge to yaml-cpp, which throws.
  try {
    const std::vector<YAML::Mark> documents = DocumentsOf(text);
    if (documents.size() > 1 && absl::StrContains(text, "---")) {
      problems->Add(converter.PlaceOf(documents[1]), "a second document begins here (after `---`)",
                    "put each job into a file of its own");
    } else if (documents.size() > 1) {
      problems->Add(converter.PlaceOf(documents[1]),
                    "this is not YAML: what stands here belongs to no value",
                    "check quotes, brackets and indentation");
    }
    if (!documents.empty()) return converter.Convert(YAML::Load(text), 0);
  } catch (const YAML::Exception& error) {
    problems->Add(converter.PlaceOf(error.mark), absl::StrCat("this is not YAML: ", error.msg),
                  absl::StrContains(text, "${")
                      ? "check quotes and indentation (`${NAME}` must stand in quotes)"
                      : "check quotes and indentation");
  }
  ConfigNode nothing;
  nothing.place = {source, whole ? 0 : 1, whole ? 0 : 1};
  return nothing;
}

std::string ConfigToJson(const ConfigNode& node) {
  return ToJson(node).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace mu
