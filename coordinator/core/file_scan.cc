#include "coordinator/core/file_scan.h"

#include <algorithm>
#include <utility>

namespace mu {
namespace {

constexpr absl::Duration kMostPause = absl::Seconds(5);
constexpr int kMostAnswers = 10;  // that a file was not counted

}  // namespace

std::map<WorkerId, std::vector<size_t>> FileScan::Begin(const std::vector<WorkerId>& workers) {
  failed_ = false;
  std::map<WorkerId, std::vector<size_t>> given;
  for (const auto& [file, tries] : missing_) {
    size_t chosen = turn_++;
    for (size_t i = 0; i < workers.size(); ++i) {
      if (!tries.by.contains(workers[(chosen + i) % workers.size()])) {
        chosen += i;
        break;
      }
    }
    given[workers[chosen % workers.size()]].push_back(file);
  }
  return given;
}

absl::Status FileScan::Failed(size_t file, WorkerId worker, const CallError& error) {
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
