#include "tests/testing/coordinator_run.h"

#include <signal.h>

#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "common/env/file.h"
#include "common/env/subprocess.h"
#include "tests/testing/cluster.h"
#include "tests/testing/with_this_test.h"

namespace mu::testing {

absl::StatusOr<CoordinatorRun> RunCoordinator(std::vector<std::string> args,
                                              const std::string& directory, bool with_report,
                                              absl::Duration timeout) {
  CoordinatorRun run;
  const std::string report = directory + "/report.json";
  if (with_report) args.push_back("--report=" + report);
  SubprocessOptions options;
  options.path = BinaryDirectory() + "/coordinator";
  options.args = std::move(args);
  options.output_file = directory + "/output.txt";
  RemoveFile(options.output_file).IgnoreError();
  const std::string output_file = options.output_file;
  MU_ASSIGN_OR_RETURN(const std::unique_ptr<Subprocess> process,
                      Subprocess::Start(EndsWithThisTest(std::move(options))));
  const auto status = process->WaitFor(timeout);
  if (!status) process->Kill(SIGKILL).IgnoreError();
  if (auto output = ReadFile(output_file); output.ok()) run.output = *std::move(output);
  if (!status) {
    return absl::DeadlineExceededError(absl::StrCat(
        "the coordinator still ran after ", absl::FormatDuration(timeout), ":\n", run.output));
  }
  run.exit_code = status->signal != 0 ? -status->signal : status->code;
  if (with_report) {
    if (const auto text = ReadFile(report); text.ok())
      run.report = nlohmann::json::parse(*text, nullptr, false);
  }
  return run;
}

std::string DataDirectory() {
  const char* named = std::getenv("MUSTER_DATA");
  std::string path = named != nullptr ? named : "";
  if (path.empty()) path = "../shared/data";  // tests run at the project's root
  const auto absolute = AbsolutePath(path);
  if (!absolute.ok() || !GetFileInfo(*absolute).ok()) return "";
  setenv("MUSTER_DATA", absolute->c_str(),
         1);  // the job files that the program under test reads name it
  return *absolute;
}

}  // namespace mu::testing
