// A model of this project: y = weight * x + bias.
#pragma once

#include <memory>
#include <string>

#include "coordinator/frontend/model.h"

// `json` is the map below `line` in the job file, here without keys.
absl::StatusOr<std::unique_ptr<mu::Model>> MakeLineModel(const std::string& json);
