// What models there are and what their keys in a job file mean: the one table from which
// `coordinator describe` and docs/reference/models.md are made.
#pragma once

#include <string>
#include <vector>

#include "coordinator/frontend/model.h"

namespace mu {

struct ModelKeyDoc {
  std::string key;  // below the model's name; "features.rows" is the key `rows` of an item
  std::string type;
  std::string default_value;  // empty: the key is required
  std::string meaning;
};

struct ModelDoc {
  std::string name;
  std::string what;  // what it computes, for what
  std::vector<ModelKeyDoc> keys;
};

// Muster's own, in the order of ModelProto.
std::vector<ModelDoc> BuiltinModelDocs();

// The model's keys as lines of a Markdown table, with its head.
std::string KeyTable(const ModelDoc& doc);

}  // namespace mu
