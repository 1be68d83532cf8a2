// The files that a command writes: looked at before it begins, so that none replaces what it reads
// and none is found impossible only at the end.
#pragma once

#include <string>
#include <vector>

#include "coordinator/cli/problem_list.h"
#include "proto/job.pb.h"

namespace mu {

// A file that a command reads, or a folder whose files all count as read.
struct InputFile {
  std::string path;
  std::string what;  // "the job file"
  bool is_vocabulary = false;
};

// The job file itself, all files of all of its sources, and the checkpoint of its warm start.
std::vector<InputFile> InputsOf(const std::string& job_file, const muster::JobProto& job);

// What Muster itself keeps in a run's directory, but for the reports.
std::vector<InputFile> RunFilesOf(const std::string& job_dir);

// The same and the report of what was trained there: for a command that reads the run.
std::vector<InputFile> FilesOfTrainedRun(const std::string& job_dir);

// The directory of the run, a job's or a program's, if there is one, in which the checkpoint still
// lies: RUN/checkpoints/NAME or RUN/followed/NAME. Otherwise empty.
std::string RunOfCheckpoint(const std::string& checkpoint);

struct PlannedOutput {
  Place place;  // "--out"
  std::string path;
  bool folder_is_made = false;  // by the command, which says why not; otherwise it must exist
  std::string remedy = "name another file";
};

// Adds a problem for each output that is one of the inputs or lies in one (by whatever path or
// link), that another output is too, that is a folder, a device or a pipe, or whose folder is
// missing or cannot be written to. An output with an empty path is none.
void CheckOutputs(const std::vector<PlannedOutput>& outputs, const std::vector<InputFile>& inputs,
                  ProblemList* problems);

}  // namespace mu
