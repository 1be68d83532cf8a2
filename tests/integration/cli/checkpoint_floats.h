// What a run's checkpoint holds, for tests that look at numbers.
#pragma once

#include <cstdint>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/env/file.h"
#include "tests/testing/matchers.h"

namespace mu::testing {

// The float32 tensors of all servers, by name (docs/checkpoint_format.md).
inline std::map<std::string, std::vector<float>> FloatsOf(const std::string& checkpoint,
                                                          int servers) {
  std::map<std::string, std::vector<float>> floats;
  for (int server = 0; server < servers; ++server) {
    const auto file = ReadFile(absl::StrCat(checkpoint, "/ps-", server, ".safetensors"));
    EXPECT_THAT(file, IsOk());
    uint64_t header = 0;
    if (!file.ok() || file->size() < sizeof(header)) return {};
    std::memcpy(&header, file->data(), sizeof(header));
    const std::string bytes = file->substr(sizeof(header) + header);
    const auto tensors =
        nlohmann::json::parse(file->substr(sizeof(header), header), nullptr, false);
    for (const auto& [name, tensor] : tensors.items()) {
      if (!tensor.contains("dtype") || tensor["dtype"] != "F32") continue;
      const auto begin = tensor["data_offsets"][0].get<size_t>();
      const auto end = tensor["data_offsets"][1].get<size_t>();
      std::vector<float>& values = floats[name];
      values.resize((end - begin) / sizeof(float));
      if (!values.empty()) std::memcpy(values.data(), bytes.data() + begin, end - begin);
    }
  }
  return floats;
}

}  // namespace mu::testing
