// A job file and --set overrides: the text, then a zero byte before each override.
#include "coordinator/cli/job_file.h"

#include <string>
#include <vector>

#include "absl/strings/str_split.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::vector<std::string> parts =
      absl::StrSplit(absl::string_view(reinterpret_cast<const char*>(data), size), '\0');
  mu::JobFileOptions options;
  options.overrides.assign(parts.begin() + 1, parts.end());
  options.models = {"two_tower"};
  options.files_elsewhere = true;  // any pattern may match, even the whole disk
  options.environment = [](const std::string& name) -> std::optional<std::string> {
    if (name.size() > 3) return std::nullopt;
    return name.size() == 1 ? "" : "3";
  };
  for (const mu::JobUse use : {mu::JobUse::kTrain, mu::JobUse::kEval}) {
    options.use = use;
    mu::ProblemList problems;
    (void)mu::ParseJob(parts[0], "job.yaml", "/nowhere", options, &problems);
    (void)problems.ToString();
  }
  return 0;
}
