// Settings of every kind of optimizer, from the table: the defaults, and each way to change what a
// kind keeps and computes. So tests over them know a new kind, too.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "common/optimizer/optimizer_settings.h"
#include "common/optimizer/optimizer_table.h"
#include "google/protobuf/util/json_util.h"

namespace mu::testing {

// "sgd, adagrad, ...", as messages list them.
inline std::string OptimizerNames() {
  return absl::StrJoin(AllOptimizers(), ", ", [](std::string* out, const OptimizerKind& kind) {
    absl::StrAppend(out, kind.name);
  });
}

struct ExampleOptimizer {
  std::string name;     // such as "sgd_momentum"
  std::string changed;  // what is not the default, such as "momentum"
  muster::OptimizerProto proto;
};

// A value that the key may have and that is not its default; as JSON.
inline std::vector<std::string> OtherValues(const OptimizerKey& key) {
  switch (key.range) {
    case OptimizerKey::Range::kFlag:
      return {"true"};
    case OptimizerKey::Range::kChoice: {
      std::vector<std::string> others;
      for (size_t i = 1; i < key.choices.size(); ++i)
        others.push_back(absl::StrCat("\"", key.choices[i], "\""));
      return others;
    }
    default:
      return {"0.25"};
  }
}

// "momentum", "centered: true".
inline std::string Changed(const OptimizerKey& key, const std::string& value) {
  const bool number =
      key.range != OptimizerKey::Range::kFlag && key.range != OptimizerKey::Range::kChoice;
  return number ? key.name : absl::StrCat(key.name, ": ", absl::StrReplaceAll(value, {{"\"", ""}}));
}

// All that are right, with a learning rate of 0.05: each kind as it is, with each key changed, and
// with all of them changed.
inline std::vector<ExampleOptimizer> ExampleOptimizers() {
  std::vector<ExampleOptimizer> examples;
  const auto add = [&](const OptimizerKind& kind, const std::string& name,
                       const std::string& changed, const std::string& settings) {
    ExampleOptimizer example{name, changed, {}};
    const std::string json =
        absl::StrCat("{\"", kind.name, "\": {\"learning_rate\": 0.05", settings, "}}");
    const auto parsed = google::protobuf::util::JsonStringToMessage(json, &example.proto);
    if (parsed.ok() && mu::ProblemsOf(example.proto).empty())
      examples.push_back(std::move(example));
  };
  for (const OptimizerKind& kind : AllOptimizers()) {
    add(kind, kind.name, "", "");
    std::string all, all_changed;
    for (const OptimizerKey& key : kind.keys) {
      if (std::string("learning_rate") == key.name) continue;
      for (const std::string& value : OtherValues(key)) {
        const std::string setting = absl::StrCat(", \"", key.name, "\": ", value);
        add(kind, absl::StrCat(kind.name, "_", key.name), Changed(key, value), setting);
      }
      absl::StrAppend(&all, ", \"", key.name, "\": ", OtherValues(key)[0]);
      absl::StrAppend(&all_changed, all_changed.empty() ? "" : ", ",
                      Changed(key, OtherValues(key)[0]));
    }
    add(kind, absl::StrCat(kind.name, "_with_all"), all_changed, all);
  }
  return examples;
}

}  // namespace mu::testing
