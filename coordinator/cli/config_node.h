// A YAML document as a plain tree in which every node knows its place.
//
// yaml-cpp accepts much that is surely a slip (duplicate keys, further documents, merge keys that
// it ignores); ParseConfig reports all of these. Plain values, no thread safety.
#pragma once

#include <string>
#include <vector>

#include "coordinator/cli/problem_list.h"

namespace mu {

struct ConfigEntry;

struct ConfigNode {
  enum Kind { kNull, kScalar, kList, kMap, kInvalid };  // kInvalid: reported already

  Kind kind = kNull;
  Place place;
  std::string text;     // kScalar
  bool quoted = false;  // kScalar: it stood in quotes, so it is text whatever it looks like
  std::vector<ConfigNode> items;     // kList
  std::vector<ConfigEntry> entries;  // kMap, in the file's order, each key once

  // The entry's value; null where there is none.
  const ConfigNode* Find(const std::string& key) const;
  ConfigNode* Find(const std::string& key);

  // "a map", "a list", "the text `x`", "nothing": for messages.
  std::string Describe() const;
};

struct ConfigEntry {
  std::string key;
  Place key_place;
  ConfigNode value;
};

// Parses `text`, one YAML document. `source` is the place's source; places are lines and columns,
// or, if `whole`, the source alone (the value of a flag). What is wrong goes to `problems`; the
// tree holds what could be read.
ConfigNode ParseConfig(const std::string& text, const std::string& source, bool whole,
                       ProblemList* problems);

// The tree as JSON: plain scalars that are JSON numbers, true, false or null are written as such,
// all else as strings.
std::string ConfigToJson(const ConfigNode& node);

}  // namespace mu
