#include "coordinator/training/evaluation_json.h"

#include <cmath>

namespace mu {

using Json = nlohmann::ordered_json;

Json NumberToJson(double number) { return std::isfinite(number) ? Json(number) : Json(nullptr); }

double NumberOf(const Json& object, const char* key) {
  const auto it = object.find(key);
  return it != object.end() && it->is_number() ? it->get<double>() : std::nan("");
}

uint64_t CountOf(const Json& object, const char* key) {
  const auto it = object.find(key);
  return it != object.end() && it->is_number_unsigned() ? it->get<uint64_t>() : 0;
}

std::string TextOf(const Json& object, const char* key) {
  const auto it = object.find(key);
  return it != object.end() && it->is_string() ? it->get<std::string>() : "";
}

Json ListOf(const Json& object, const char* key) {
  const auto it = object.find(key);
  return it != object.end() && it->is_array() ? *it : Json::array();
}

Json ToJson(const Evaluation& evaluation) {
  Json metrics = Json::object();
  for (const auto& [name, value] : evaluation.metrics) metrics[name] = NumberToJson(value);
  return {{"steps", evaluation.steps},
          {"epoch", evaluation.epoch},
          {"seconds", NumberToJson(evaluation.seconds)},
          {"examples", evaluation.examples},
          {"metrics", std::move(metrics)},
          {"best_so_far", evaluation.best_so_far},
          {"checkpoint", evaluation.checkpoint}};
}

Evaluation EvaluationOf(const Json& json) {
  Evaluation evaluation = {.steps = CountOf(json, "steps"),
                           .epoch = static_cast<uint32_t>(CountOf(json, "epoch")),
                           .seconds = NumberOf(json, "seconds"),
                           .examples = CountOf(json, "examples"),
                           .checkpoint = TextOf(json, "checkpoint")};
  if (const auto best = json.find("best_so_far"); best != json.end())
    evaluation.best_so_far = best->is_boolean() && best->get<bool>();
  if (const auto metrics = json.find("metrics"); metrics != json.end() && metrics->is_object()) {
    for (const auto& [name, value] : metrics->items())
      evaluation.metrics[name] = value.is_number() ? value.get<double>() : std::nan("");
  }
  return evaluation;
}

}  // namespace mu
