// The files of a job's sources: relative to the job file, patterns expanded, each found missing
// before anything starts.
#pragma once

#include <string>

#include "coordinator/cli/message_reader.h"
#include "coordinator/cli/problem_list.h"
#include "proto/job.pb.h"

namespace mu {

// Makes the paths of `source` (at `key`) absolute, below `directory` where they are relative, and
// replaces patterns
// (* ? [ ]) by what they match, sorted, no file twice. With `must_exist`, files that are missing or
// cannot be read and patterns without a match are problems; without it patterns that match nothing
// stay.
void ResolveFiles(const std::string& key, const std::string& directory, bool must_exist,
                  const KeyPlaces& places, muster::SourceProto* source, ProblemList* problems);

}  // namespace mu
