#include "coordinator/core/file_scan.h"

#include <algorithm>
#include <utility>

namespace mu {
namespace {

constexpr absl::Duration kMostPause = absl::Seconds(5);
constexpr int kMostAnswers = 10;  // that a file was not counted

}  // namespace

std::map<WorkerId, std::vector<size_t>> FileScan::Begin(const std::vector<WorkerId>& workers,
                                                        absl::Time now) {
  failed_ = false;
  parts_.clear();
  for (const WorkerId worker : workers) parts_[worker].last_answer = now;
  std::map<WorkerId, std::vector<size_t>> given;
  for (const auto& [file, tries] : missing_) {
    size_t chosen = turn_++;
    for (size_t i = 0; i < workers.size(); ++i) {
      if (!tries.by.contains(workers[(chosen + i) % workers.size()])) {
        chosen += i;
        break;
      }
    }
    const WorkerId worker = workers[chosen % workers.size()];
    given[worker].push_back(file);
    parts_.at(worker).open.insert(file);
  }
  return given;
}

void FileScan::Answered(size_t file, WorkerId worker, absl::Time now) {
  const auto part = parts_.find(worker);
  if (part == parts_.end() || part->second.open.erase(file) == 0) return;
  part->second.last_answer = now;
  part->second.report_after = kPatience;
}

bool FileScan::Counted(size_t file, WorkerId worker, absl::Time now) {
  Answered(file, worker, now);
  return missing_.erase(file) > 0;
}

std::vector<FileScan::Silence> FileScan::Silent(absl::Time now) {
  std::vector<Silence> silent;
  for (auto& [worker, part] : parts_) {
    const absl::Duration lasts = now - part.last_answer;
    if (part.open.empty() || lasts < part.report_after) continue;
    part.report_after = 2 * lasts;
    silent.push_back({worker, part.open.size(), *part.open.begin(), lasts});
  }
  return silent;
}

std::map<WorkerId, size_t> FileScan::Help(absl::Time now) {
  std::set<size_t> late, looked_through;
  for (const auto& [worker, part] : parts_) {
    const bool silent = now - part.last_answer >= kPatience;
    for (const size_t file : part.open) (silent ? late : looked_through).insert(file);
  }
  std::map<WorkerId, size_t> help;
  for (auto& [worker, part] : parts_) {
    if (!part.open.empty()) continue;
    const auto file = std::find_if(late.begin(), late.end(), [&, id = worker](size_t f) {
      const auto missing = missing_.find(f);
      return missing != missing_.end() && !missing->second.by.contains(id) &&
             !looked_through.contains(f);
    });
    if (file == late.end()) continue;
    help[worker] = *file;
    looked_through.insert(*file);
    part = {.open = {*file}, .last_answer = now};
  }
  return help;
}

absl::Status FileScan::Failed(size_t file, WorkerId worker, const CallError& error,
                              absl::Time now) {
  Answered(file, worker, now);
  if (!missing_.contains(file)) return absl::OkStatus();  // another worker could
  if (error.kind == pb::ERROR_USER) return error.status;
  failed_ = true;
  Tries& tries = missing_[file];
  tries.by.insert(worker);
  if (error.answered() && ++tries.answered >= kMostAnswers) return error.status;
  return absl::OkStatus();
}

absl::Duration FileScan::Pause() {
  if (failed_) return std::exchange(pause_, std::min(2 * pause_, kMostPause));
  pause_ = kLeastPause;
  return absl::ZeroDuration();
}

}  // namespace mu
