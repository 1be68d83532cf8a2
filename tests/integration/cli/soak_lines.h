// What `coordinator soak` has written down.
#pragma once

#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "common/env/file.h"

namespace mu::testing {

// The lines of RECORD/runs.jsonl.
inline std::vector<nlohmann::json> SoakLines(const std::string& record) {
  std::vector<nlohmann::json> runs;
  std::istringstream lines(ReadFile(JoinPath(record, "runs.jsonl")).value_or(""));
  for (std::string line; std::getline(lines, line);)
    runs.push_back(nlohmann::json::parse(line, nullptr, false));
  return runs;
}

}  // namespace mu::testing
