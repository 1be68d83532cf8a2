// The files of a job's sources: relative to the job file, patterns expanded, each found missing
// before anything starts.
#pragma once

#include <string>

#include "coordinator/cli/message_reader.h"
#include "coordinator/cli/problem_list.h"
#include "proto/job.pb.h"

namespace mu {

enum class FilesAre {
  kHere,       // missing and unreadable ones are problems and are left out
  kElsewhere,  // the nodes of a cluster have them: only a pattern must match something here
  kNotRead,    // by this command: patterns that match nothing stay
};

// What to do about a path that does not exist: where the link leads that it is, the nearest name
// beside it, or how far the path does exist.
std::string MissingRemedy(const std::string& path);

// Makes all paths of `source` (at `key`) absolute, below `directory` where they are relative, and
// replaces patterns (* ? [ ]) of data files by what they match, sorted, no file twice
// (LeaveOutRepeatedFiles). Vocabularies are read by the coordinator: they must be here if they are
// said to exist and this command reads the source.
void ResolveFiles(const std::string& key, const std::string& directory, FilesAre where,
                  bool vocabularies_exist, const KeyPlaces& places, muster::SourceProto* source,
                  ProblemList* problems);

}  // namespace mu
