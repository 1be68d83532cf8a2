#include "coordinator/frontend/model_options.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/graph/nearest_name.h"

namespace mu {

using Json = nlohmann::json;

class ModelOptions::Value {
 public:
  explicit Value(const Json& json) : json_(json) {}
  const Json& json() const { return json_; }

 private:
  const Json& json_;
};

namespace {

std::string Shown(const Json& json) {
  const std::string text = json.dump(-1, ' ', false, Json::error_handler_t::replace);
  return text.size() <= 60 ? text : text.substr(0, 57) + "...";
}

std::string Refuse(const char* type, const Json& json) {
  return absl::StrCat("must be ", type, ", not ", Shown(json));
}

// What is wrong with `json` as one value; empty if it was taken.
std::string ReadOne(const Json& json, const OptionRules& rules, int64_t* value) {
  if (!json.is_number_integer()) return Refuse("a whole number", json);
  const double number = json.get<double>();
  if (json.is_number_unsigned() &&
      json.get<uint64_t>() > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
    return absl::StrCat("must be below 2^63, not ", Shown(json));
  }
  if (number < rules.least) return absl::StrCat("must be at least ", rules.least, ", not ", number);
  if (number > rules.most) return absl::StrCat("must be at most ", rules.most, ", not ", number);
  *value = json.get<int64_t>();
  return "";
}

std::string ReadOne(const Json& json, const OptionRules& rules, float* value) {
  if (!json.is_number()) return Refuse("a number", json);
  const double number = json.get<double>();
  if (std::abs(number) > std::numeric_limits<float>::max())
    return absl::StrCat("must be within a float's range, not ", number);
  if (number < rules.least) return absl::StrCat("must be at least ", rules.least, ", not ", number);
  if (number > rules.most) return absl::StrCat("must be at most ", rules.most, ", not ", number);
  *value = static_cast<float>(number);
  return "";
}

std::string ReadOne(const Json& json, const OptionRules&, bool* value) {
  if (!json.is_boolean()) return Refuse("true or false", json);
  *value = json.get<bool>();
  return "";
}

std::string ReadOne(const Json& json, const OptionRules& rules, std::string* value) {
  if (!json.is_string()) return Refuse("a text", json);
  if (rules.required && json.get<std::string>().empty()) return "must not be empty";
  *value = json.get<std::string>();
  return "";
}

template <typename T>
std::string ReadList(const Json& json, const OptionRules& rules, const char* type,
                     std::vector<T>* value) {
  if (!json.is_array()) return Refuse(type, json);
  if (rules.required && json.empty()) return "must not be empty";
  std::vector<T> read;
  for (const Json& item : json) {
    T one{};
    if (const std::string wrong = ReadOne(item, rules, &one); !wrong.empty())
      return absl::StrCat("must be ", type, ", and its item ", read.size(), " (from 0) ", wrong);
    read.push_back(std::move(one));
  }
  *value = std::move(read);
  return "";
}

template <typename T>
std::string ListText(const std::vector<T>& values) {
  return absl::StrCat("[", absl::StrJoin(values, ", "), "]");
}

}  // namespace

void ModelOptions::Add(const std::string& key, const char* type, std::string default_value,
                       const std::string& meaning, const OptionRules& rules,
                       std::function<std::string(const Value&)> read) {
  ModelKeyDoc doc{key, type, rules.required ? "" : std::move(default_value), meaning};
  options_.push_back({std::move(doc), rules.required, std::move(read)});
}

void ModelOptions::Int(const std::string& key, int64_t* value, const std::string& meaning,
                       const OptionRules& rules) {
  Add(key, "whole number", absl::StrCat(*value), meaning, rules,
      [=](const Value& json) { return ReadOne(json.json(), rules, value); });
}

void ModelOptions::Number(const std::string& key, float* value, const std::string& meaning,
                          const OptionRules& rules) {
  Add(key, "number", absl::StrCat(*value), meaning, rules,
      [=](const Value& json) { return ReadOne(json.json(), rules, value); });
}

void ModelOptions::Flag(const std::string& key, bool* value, const std::string& meaning,
                        const OptionRules& rules) {
  Add(key, "true or false", *value ? "true" : "false", meaning, rules,
      [=](const Value& json) { return ReadOne(json.json(), rules, value); });
}

void ModelOptions::Text(const std::string& key, std::string* value, const std::string& meaning,
                        const OptionRules& rules) {
  Add(key, "text", absl::StrCat("\"", *value, "\""), meaning, rules,
      [=](const Value& json) { return ReadOne(json.json(), rules, value); });
}

void ModelOptions::Ints(const std::string& key, std::vector<int64_t>* value,
                        const std::string& meaning, const OptionRules& rules) {
  Add(key, "list of whole numbers", ListText(*value), meaning, rules, [=](const Value& json) {
    return ReadList(json.json(), rules, "a list of whole numbers", value);
  });
}

void ModelOptions::Numbers(const std::string& key, std::vector<float>* value,
                           const std::string& meaning, const OptionRules& rules) {
  Add(key, "list of numbers", ListText(*value), meaning, rules,
      [=](const Value& json) { return ReadList(json.json(), rules, "a list of numbers", value); });
}

void ModelOptions::Texts(const std::string& key, std::vector<std::string>* value,
                         const std::string& meaning, const OptionRules& rules) {
  Add(key, "list of texts", ListText(*value), meaning, rules,
      [=](const Value& json) { return ReadList(json.json(), rules, "a list of texts", value); });
}

void ModelOptions::IntMap(const std::string& key, std::map<std::string, int64_t>* value,
                          const std::string& meaning, const OptionRules& rules) {
  constexpr char kType[] = "a map of names to whole numbers";
  Add(key, "map of whole numbers", "{}", meaning, rules, [=](const Value& json) -> std::string {
    if (!json.json().is_object()) return Refuse(kType, json.json());
    if (rules.required && json.json().empty()) return "must not be empty";
    std::map<std::string, int64_t> read;
    for (const auto& [name, item] : json.json().items()) {
      if (const std::string wrong = ReadOne(item, rules, &read[name]); !wrong.empty())
        return absl::StrCat("must be ", kType, ", and ", name, " ", wrong);
    }
    *value = std::move(read);
    return "";
  });
}

absl::Status ModelOptions::Read(const std::string& model, const std::string& json) const {
  const Json root = Json::parse(json, nullptr, /*allow_exceptions=*/false);
  const std::string path = absl::StrCat("model.", model);
  if (!root.is_object())
    return absl::InvalidArgumentError(absl::StrCat(path, ": must be a map of keys"));
  std::vector<std::string> names, problems;
  for (const Option& option : options_) names.push_back(option.doc.key);
  for (const auto& [key, value] : root.items()) {
    if (std::find(names.begin(), names.end(), key) != names.end()) continue;
    const std::string nearest = NearestName(key, names);
    problems.push_back(absl::StrCat(path, ".", key, ": is no option of this model; ",
                                    nearest.empty()
                                        ? absl::StrCat("there are ", absl::StrJoin(names, ", "))
                                        : absl::StrCat("did you mean `", nearest, "`?")));
  }
  for (const Option& option : options_) {
    const auto found = root.find(option.doc.key);
    std::string wrong;
    if (found != root.end()) {
      wrong = option.read(Value(*found));
    } else if (option.required) {
      wrong = absl::StrCat("is missing: ", option.doc.meaning);
    }
    if (!wrong.empty()) problems.push_back(absl::StrCat(path, ".", option.doc.key, ": ", wrong));
  }
  if (problems.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrJoin(problems, "\n"));
}

ModelDoc ModelOptions::Doc(const std::string& name, const std::string& what) const {
  ModelDoc doc{name, what, {}};
  for (const Option& option : options_) doc.keys.push_back(option.doc);
  return doc;
}

}  // namespace mu
