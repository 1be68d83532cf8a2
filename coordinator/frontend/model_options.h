// Reads the options of a user's own model from the job file, says what is wrong with them, and
// describes them for `coordinator describe`.
//
//   struct LinearOptions {
//     std::string label;
//     int64_t dim = 16;
//     void Describe(mu::ModelOptions& options) {
//       options.Text("label", &label, "the label's column", {.required = true});
//       options.Int("dim", &dim, "length of the vectors", {.least = 1});
//     }
//   };
//   registry.RegisterOptions<LinearOptions>("linear", "A line", MakeLinear);
//
// Job file: model: {linear: {label: clicked, dim: 8}}. One thread.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "coordinator/frontend/model_doc.h"

namespace mu {

struct OptionRules {
  bool required = false;  // else what the variable holds is the default
  // Of a number, or of each number of a list or map.
  double least = -std::numeric_limits<double>::infinity();
  double most = std::numeric_limits<double>::infinity();
};

class ModelOptions {
 public:
  // Each key once. The variables must live as long as this.
  void Int(const std::string& key, int64_t* value, const std::string& meaning,
           const OptionRules& rules = {});
  void Number(const std::string& key, float* value, const std::string& meaning,
              const OptionRules& rules = {});
  void Flag(const std::string& key, bool* value, const std::string& meaning,
            const OptionRules& rules = {});
  void Text(const std::string& key, std::string* value, const std::string& meaning,
            const OptionRules& rules = {});
  void Ints(const std::string& key, std::vector<int64_t>* value, const std::string& meaning,
            const OptionRules& rules = {});
  void Numbers(const std::string& key, std::vector<float>* value, const std::string& meaning,
               const OptionRules& rules = {});
  void Texts(const std::string& key, std::vector<std::string>* value, const std::string& meaning,
             const OptionRules& rules = {});
  // A map of names to whole numbers, such as columns to the rows of their tables.
  void IntMap(const std::string& key, std::map<std::string, int64_t>* value,
              const std::string& meaning, const OptionRules& rules = {});

  // Fills the variables from the map below the model's name. INVALID_ARGUMENT with a line for each
  // key that is not described (and the nearest one that is), missing, or has a value that does not
  // fit: "model.NAME.KEY: ...", which the command line shows with the key's place in the job file.
  absl::Status Read(const std::string& model, const std::string& json) const;

  ModelDoc Doc(const std::string& name, const std::string& what) const;

 private:
  class Value;  // a JSON value
  struct Option {
    ModelKeyDoc doc;
    bool required;
    // What is wrong with the value; empty if it was taken.
    std::function<std::string(const Value&)> read;
  };
  void Add(const std::string& key, const char* type, std::string default_value,
           const std::string& meaning, const OptionRules& rules,
           std::function<std::string(const Value&)> read);

  std::vector<Option> options_;
};

}  // namespace mu
