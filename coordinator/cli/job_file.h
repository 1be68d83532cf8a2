// A job file as a checked message, or all that is wrong with it.
#pragma once

#include <string>
#include <vector>

#include "coordinator/cli/environment.h"
#include "coordinator/cli/job_validation.h"
#include "coordinator/cli/message_reader.h"
#include "coordinator/cli/problem_list.h"
#include "proto/job.pb.h"

namespace mu {

struct JobFileOptions {
  JobUse use = JobUse::kTrain;
  std::vector<std::string> overrides;  // of --set
  std::vector<std::string> models;     // names of users' models
  bool files_elsewhere = false;        // on the machines of a cluster, perhaps not on this one
  bool vocabularies_exist = true;      // false: this command may be about to make them
  Environment environment = ProcessEnvironment();
};

struct JobFile {
  muster::JobProto job;  // defaults filled in, globs expanded, paths absolute
  KeyPlaces places;
};

// Reads the file at `path`. With an empty list of problems (as far as this call is concerned) the
// job is fit to run.
JobFile LoadJobFile(const std::string& path, const JobFileOptions& options, ProblemList* problems);

// The same for a text; `source` names it in places, paths are relative to `directory`.
JobFile ParseJob(const std::string& text, const std::string& source, const std::string& directory,
                 const JobFileOptions& options, ProblemList* problems);

}  // namespace mu
