#include "coordinator/cli/output_check.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/env/file.h"
#include "common/env/file_identity.h"

namespace mu {
namespace {

using Paths = google::protobuf::RepeatedPtrField<std::string>;

void AddFiles(const std::string& key, const Paths& files, std::vector<InputFile>* inputs) {
  for (const std::string& file : files)
    inputs->push_back({file, absl::StrCat("a data file of the job (", key, ")")});
}

void AddSource(const std::string& key, const muster::SourceProto& source,
               std::vector<InputFile>* inputs) {
  AddFiles(key + ".files", source.files(), inputs);
  AddFiles(key + ".labels", source.labels(), inputs);
  for (const muster::JobColumnProto& column : source.columns()) {
    AddFiles(absl::StrCat(key, ".columns, ", column.name()), column.files(), inputs);
    if (!column.vocabulary().empty())
      inputs->push_back(
          {column.vocabulary(),
           absl::StrCat("the vocabulary of the column ", column.name(), " (", key, ")"),
           /*is_vocabulary=*/true});
  }
}

// The path and the folders that it lies in.
std::vector<FileIdentity> PathAndFolders(const std::string& path) {
  std::vector<FileIdentity> found = {FileIdentity(path)};
  for (std::string folder = DirectoryOf(PathInRealFolder(path)); folder != "/" && folder != ".";
       folder = DirectoryOf(folder)) {
    found.emplace_back(folder);
  }
  return found;
}

// Programs are given these as if they were files; a rename would replace them.
bool IsDeviceFolder(const std::string& folder) {
  return folder == "/dev" || folder == "/proc" || absl::StartsWith(folder, "/proc/");
}

// Why nothing can be written to `path`, and what to do; nothing if it can.
std::pair<std::string, std::string> WhyNoFile(const PlannedOutput& output) {
  struct stat info;
  if (::stat(output.path.c_str(), &info) == 0) {
    if (S_ISDIR(info.st_mode)) return {absl::StrCat(output.path, " is a folder"), "name a file"};
    if (!S_ISREG(info.st_mode))
      return {absl::StrCat(output.path, " is a device, a pipe or a socket"), "name a file"};
  }
  const std::string folder = DirectoryOf(output.path);
  if (IsDeviceFolder(DirectoryOf(PathInRealFolder(output.path))))
    return {absl::StrCat("there are no files in ", folder), "name a file in another folder"};
  if (output.folder_is_made) return {};
  if (!FileExists(folder))
    return {absl::StrCat("there is no folder ", folder), "make it, or name another file"};
  if (!DirectoryExists(folder))
    return {absl::StrCat(folder, " is a file"), "name a file in a folder"};
  if (::access(folder.c_str(), W_OK | X_OK) != 0)
    return {std::string(ErrnoToStatus(errno, "write to the folder", folder).message()),
            "name a file in another folder"};
  return {};
}

}  // namespace

std::vector<InputFile> InputsOf(const std::string& job_file, const muster::JobProto& job) {
  std::vector<InputFile> inputs = {{job_file, "the job file"}};
  AddSource("data.train", job.data().train(), &inputs);
  AddSource("data.eval", job.data().eval(), &inputs);
  AddSource("data.predict", job.data().predict(), &inputs);
  if (!job.warm_start().checkpoint().empty())
    inputs.push_back({job.warm_start().checkpoint(), "what the job's warm_start names"});
  return inputs;
}

std::vector<InputFile> RunFilesOf(const std::string& job_dir) {
  std::vector<InputFile> files;
  for (const char* name : {"job.json", "run.json", "lock", "checkpoints", "epochs", "layouts",
                           "cache", "evaluation_cache"})
    files.push_back({JoinPath(job_dir, name), absl::StrCat("what Muster keeps in ", job_dir)});
  const std::string logs = JoinPath(job_dir, "logs");
  for (const std::string& name : ListDirectory(logs).value_or(std::vector<std::string>()))
    files.push_back({JoinPath(logs, name), absl::StrCat("a log of what ran in ", job_dir)});
  for (const char* name : {"followed", "evaluations.json"})
    files.push_back({JoinPath(job_dir, name),
                     absl::StrCat("what `coordinator eval --follow` keeps in ", job_dir)});
  return files;
}

std::vector<InputFile> FilesOfTrainedRun(const std::string& job_dir) {
  std::vector<InputFile> files = RunFilesOf(job_dir);
  files.push_back({JoinPath(job_dir, "report.json"),
                   absl::StrCat("the report of what was trained in ", job_dir)});
  return files;
}

std::string RunOfCheckpoint(const std::string& checkpoint) {
  if (checkpoint.empty()) return "";
  const std::string folder = DirectoryOf(PathInRealFolder(checkpoint));
  if (BaseName(folder) != "checkpoints" && BaseName(folder) != "followed") return "";
  std::string run = DirectoryOf(folder);
  // A checkpoint may have been copied into a folder of this name.
  const bool is_run =
      FileExists(JoinPath(run, "job.json")) || FileExists(JoinPath(run, "run.json"));
  return is_run ? run : "";
}

void CheckOutputs(const std::vector<PlannedOutput>& outputs, const std::vector<InputFile>& inputs,
                  ProblemList* problems) {
  std::vector<std::pair<FileIdentity, const InputFile*>> read;
  read.reserve(inputs.size());
  for (const InputFile& input : inputs) read.emplace_back(FileIdentity(input.path), &input);
  std::vector<std::pair<FileIdentity, const PlannedOutput*>> written;
  for (const PlannedOutput& output : outputs) {
    if (output.path.empty()) continue;
    const std::vector<FileIdentity> within = PathAndFolders(output.path);
    const auto lost = absl::c_find_if(
        read, [&](const auto& input) { return absl::c_linear_search(within, input.first); });
    const auto twice =
        absl::c_find_if(written, [&](const auto& other) { return other.first == within.front(); });
    if (lost != read.end()) {
      const bool itself = lost->first == within.front();
      problems->Add(output.place,
                    absl::StrCat(output.path, itself ? " is " : " is a part of ",
                                 lost->second->what, ", which would be lost"),
                    output.remedy);
    } else if (twice != written.end()) {
      problems->Add(
          output.place,
          absl::StrCat(output.path, " is what ", twice->second->place.ToString(), " names, too"),
          output.remedy);
    } else if (auto [why, remedy] = WhyNoFile(output); !why.empty()) {
      problems->Add(output.place, std::move(why), std::move(remedy));
    }
    written.emplace_back(within.front(), &output);
  }
}

}  // namespace mu
