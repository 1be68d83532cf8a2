#include "tests/sim/coverage.h"

#include <algorithm>

namespace mu::sim {
namespace {

// In the order of the variants.
constexpr const char* kEvents[] = {"Tick",
                                   "Register",
                                   "Heartbeat",
                                   "Leave",
                                   "DaemonDied",
                                   "EpochSeen",
                                   "CatalogChanged",
                                   "Installed",
                                   "InstallFailed",
                                   "FunctionRefused",
                                   "DatasetAdded",
                                   "EpochStarted",
                                   "PlanMade",
                                   "FileRead",
                                   "CannotRead",
                                   "Schedule",
                                   "Results",
                                   "RunEnded",
                                   "Unreadable",
                                   "CancelEverything",
                                   "WorkerCancelled",
                                   "Fenced",
                                   "Fail",
                                   "Close",
                                   "EnableRecovery",
                                   "TaskWanted",
                                   "Configured",
                                   "Assigned",
                                   "Loaded",
                                   "RestoreDone",
                                   "RestoreFailed",
                                   "Saved",
                                   "ManifestWritten",
                                   "MostKept"};
static_assert(std::size(kEvents) == std::variant_size_v<Event>);

constexpr const char* kActions[] = {
    "AnswerRegister", "AnswerHeartbeat", "AnswerLeave",      "MemberJoined",
    "MemberLost",     "Install",         "MakePlan",         "InputWrong",
    "Scheduled",      "Start",           "StopRun",          "Deliver",
    "Finish",         "CancelOnWorkers", "FenceServers",     "Cancelled",
    "Ended",          "TaskDone",        "Configure",        "Assign",
    "Load",           "UseRouting",      "InterruptServers", "Paused",
    "RolledBack",     "Restore",         "Serving",          "Save",
    "WriteManifest",  "Committed",       "Aborted",          "Note"};
static_assert(std::size(kActions) == std::variant_size_v<Action>);

constexpr const char* kWorkerActions[] = {"RunStep",        "SendResults",   "EndRun",
                                          "Cancelled",      "InterruptCall", "UseRouting",
                                          "ForgetInstalled"};
static_assert(std::size(kWorkerActions) == std::variant_size_v<WorkerAction>);

constexpr const char* kMoments[] = {
    "registration awaited", "predecessor awaited", "predecessor given up", "compiled in vain",
    "call repeated",        "call given up",       "push not begun",       "results grouped"};
static_assert(std::size(kMoments) == kWorkerMoments);
// In the order of ServerStep.
constexpr const char* kServer[] = {"push repeated",         "push waits for first",
                                   "push partly inherited", "push wholly inherited",
                                   "push refused at gate",  "push not acknowledged",
                                   "push waits for cut",    "cut waits",
                                   "fence waits",           "save waits",
                                   "save shared",           "save ended",
                                   "restore verifies",      "restore waits",
                                   "restore repeated",      "restore keeps again",
                                   "restore fails",         "placed anew",
                                   "lost as one that hangs"};
static_assert(std::size(kServer) == kServerSteps);

void Count(uint64_t bits, std::array<uint64_t, 64>* counts) {
  for (size_t i = 0; bits != 0; ++i, bits >>= 1) (*counts)[i] += bits & 1;
}

bool Reachable(const std::string& name) {
  const auto& unreachable = Coverage::Unreachable();
  return std::none_of(unreachable.begin(), unreachable.end(),
                      [&](const auto& entry) { return entry.first == name; });
}

}  // namespace

const std::vector<std::pair<std::string, std::string>>& Coverage::Unreachable() {
  static const std::vector<std::pair<std::string, std::string>> unreachable = {
      {"InstallFailed", "an installation is tried again until its worker is lost"},
      {"FunctionRefused", "functions are not graphs"},
      {"Unreadable", "messages are structs"},
      {"EpochStarted", "users read one epoch after the other"},
      {"FileRead", "there are no files of data"},
      {"CannotRead", "there are no files of data"},
      {"InputWrong", "there are no files of data"},
      {"Fail", "no daemon fails to start"},
      {"Close", "the user's program does not end early"},
      {"AppliedFull", "servers have room for all pushes"},
      {"MostKept", "the coordinator has room for all functions"},
      {"AssignmentRepeated", "users assign nothing"},
      {"RepeatAssignment", "users assign nothing"}};
  return unreachable;
}

void Coverage::Add(const Seen& seen) {
  Count(seen.events, &events_);
  Count(seen.actions, &actions_);
  Count(seen.errors, &errors_);
  Count(seen.faults, &faults_);
  Count(seen.worker_actions, &worker_actions_);
  Count(seen.worker_moments, &worker_moments_);
  Count(seen.server, &server_);
}

void Coverage::Add(const Coverage& other) {
  for (size_t i = 0; i < events_.size(); ++i) {
    events_[i] += other.events_[i];
    actions_[i] += other.actions_[i];
    errors_[i] += other.errors_[i];
    faults_[i] += other.faults_[i];
    worker_actions_[i] += other.worker_actions_[i];
    worker_moments_[i] += other.worker_moments_[i];
    server_[i] += other.server_[i];
  }
}

std::vector<Coverage::Row> Coverage::Rows() const {
  std::vector<Row> rows;
  for (size_t i = 0; i < std::size(kEvents); ++i) {
    if (Reachable(kEvents[i])) rows.push_back({"event", kEvents[i], events_[i]});
  }
  for (size_t i = 0; i < std::size(kActions); ++i) {
    if (Reachable(kActions[i])) rows.push_back({"action", kActions[i], actions_[i]});
  }
  for (size_t i = 0; i < std::size(kWorkerActions); ++i)
    rows.push_back({"worker", kWorkerActions[i], worker_actions_[i]});
  for (size_t i = 0; i < std::size(kMoments); ++i)
    rows.push_back({"worker", kMoments[i], worker_moments_[i]});
  for (const pb::ErrorKind kind :
       {pb::ERROR_MACHINE, pb::ERROR_STALE, pb::ERROR_NOT_INSTALLED, pb::ERROR_UNSPECIFIED}) {
    rows.push_back({"end of a run",
                    kind == pb::ERROR_UNSPECIFIED ? "no error" : pb::ErrorKind_Name(kind),
                    errors_[static_cast<size_t>(kind)]});
  }
  for (int i = 0; i < kFaultKinds; ++i)
    rows.push_back({"fault", ToString(static_cast<Fault>(i)), faults_[static_cast<size_t>(i)]});
  for (int i = 0; i < kServerSteps; ++i)
    rows.push_back({"server", kServer[i], server_[static_cast<size_t>(i)]});
  return rows;
}

}  // namespace mu::sim
