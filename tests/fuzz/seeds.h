// Real messages as first inputs of the fuzz targets.
#pragma once

#include <map>
#include <string>

#include "tests/fuzz/structured.h"

namespace mu::fuzzing {

// Every call of a server, with pushes, a save and restores that succeed.
fuzz::PsCalls PsSession(bool configured = true);
// What that server answers to the pulls and pushes of the target ps_replies.
fuzz::PsReplies GoodReplies();
// A data set of CSV, a function that reads it and changes parameters, and a run of both.
fuzz::WorkerCalls WorkerSession();
fuzz::WorkerCalls WorkerWithoutData();
fuzz::CoordinatorCalls CoordinatorSession();
// Of the small model, with slots, rows, numbers of updates and a memory of pushes.
fuzz::CheckpointInput WholeCheckpoint();
fuzz::LayoutInput TwoLayouts();
std::map<std::string, fuzz::RecordsInput> RecordTexts();
std::map<std::string, fuzz::DatasetInput> DataSets();
// As a server attaches them to gRPC's status.
std::string ErrorDetails();

}  // namespace mu::fuzzing
