// An evaluation as JSON: in the report, in the user's state of checkpoints, in the record of a run
// that is followed.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "coordinator/training/training_history.h"

namespace mu {

nlohmann::ordered_json ToJson(const Evaluation& evaluation);
// What is missing or is no such value is 0, empty or NaN.
Evaluation EvaluationOf(const nlohmann::ordered_json& json);

// A number that is not finite is null, and null is NaN.
nlohmann::ordered_json NumberToJson(double number);
double NumberOf(const nlohmann::ordered_json& object, const char* key);
uint64_t CountOf(const nlohmann::ordered_json& object, const char* key);
std::string TextOf(const nlohmann::ordered_json& object, const char* key);
// The list under that key; empty if there is none.
nlohmann::ordered_json ListOf(const nlohmann::ordered_json& object, const char* key);

}  // namespace mu
