#include "tests/coordinator/export/onnx_runtime.h"

#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "common/base/status.h"
#include "common/env/file.h"

namespace mu::testing {
namespace {

using Json = nlohmann::json;

std::string Folder() {
  const char* named = std::getenv("MUSTER_ONNXRUNTIME");
  return named != nullptr ? named : MUSTER_ONNXRUNTIME_DEFAULT;
}

Json ToJson(const Dense& dense) {
  Json data = Json::array();
  for (const double value : dense.values) {
    data.push_back(dense.dtype == kFloat32 ? absl::StrFormat("%.9g", value)
                                           : absl::StrCat(static_cast<int64_t>(value)));
  }
  return {{"type", std::string(DTypeName(dense.dtype))}, {"dims", dense.shape}, {"data", data}};
}

Dense FromJson(const Json& json) {
  Dense dense;
  for (const DType dtype : {kFloat32, kInt32, kInt64, kUInt8, kBool}) {
    if (json["type"] == std::string(DTypeName(dtype))) dense.dtype = dtype;
  }
  dense.shape = json["dims"].get<Index>();
  for (const Json& value : json["data"]) {
    const std::string text = value.get<std::string>();
    // Node's words for what JSON cannot say.
    dense.values.push_back(text == "true"    ? 1
                           : text == "false" ? 0
                                             : std::strtod(text.c_str(), nullptr));
  }
  return dense;
}

// The exit code, and what was printed.
int RunCommand(const std::string& command, std::string* output) {
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return -1;
  char buffer[4096];
  while (const size_t n = std::fread(buffer, 1, sizeof(buffer), pipe)) output->append(buffer, n);
  return pclose(pipe);
}

}  // namespace

std::string OnnxRuntimeMissing() {
  std::string output;
  if (RunCommand("node --version 2>&1", &output) != 0) return "there is no node";
  if (DirectoryExists(JoinPath(Folder(), "node_modules/onnxruntime-node"))) return "";
  return absl::StrCat("there is no onnxruntime-node in ", Folder(),
                      ": tests/coordinator/export/onnxruntime.sh installs it");
}

absl::StatusOr<std::vector<OnnxAnswer>> RunOnnx(const std::vector<OnnxCase>& cases,
                                                const std::string& folder) {
  Json all = Json::array();
  for (const OnnxCase& each : cases) {
    Json inputs = Json::object();
    for (const auto& [name, dense] : each.inputs) inputs[name] = ToJson(dense);
    all.push_back({{"model", each.model}, {"inputs", inputs}});
  }
  const std::string path = JoinPath(folder, "cases.json");
  MU_RETURN_IF_ERROR(WriteFileAtomic(path, all.dump()));
  std::string output;
  const int status = RunCommand(
      absl::StrCat("cd ", Folder(), " && node ", MUSTER_RUN_ONNX, " ", path, " 2>&1"), &output);
  if (status != 0) return absl::InternalError(absl::StrCat("node failed: ", output));
  std::vector<OnnxAnswer> answers;
  for (const absl::string_view line : absl::StrSplit(output, '\n', absl::SkipEmpty())) {
    const Json json = Json::parse(line.begin(), line.end(), nullptr, /*allow_exceptions=*/false);
    if (!json.is_object()) continue;  // the runtime's warnings
    OnnxAnswer& answer = answers.emplace_back();
    if (json.contains("error")) {
      answer.error = json["error"].get<std::string>();
    } else {
      for (const auto& [name, value] : json["outputs"].items())
        answer.outputs[name] = FromJson(value);
    }
  }
  if (answers.size() == cases.size()) return answers;
  return absl::InternalError(
      absl::StrCat(answers.size(), " answers to ", cases.size(), " cases: ", output));
}

}  // namespace mu::testing
