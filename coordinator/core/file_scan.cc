#include "coordinator/core/file_scan.h"

#include <algorithm>
#include <optional>

#include "common/base/hash.h"

namespace mu {
namespace {

constexpr absl::Duration kFirstPause = absl::Milliseconds(100), kMostPause = absl::Seconds(5);
constexpr int kMostAnswers = 10;  // that a file was not counted
constexpr size_t kMostOpen = 8;   // files that a worker looks through at once

}  // namespace

std::vector<FileScan::Given> FileScan::Give(const std::vector<WorkerId>& workers, absl::Time now) {
  std::map<WorkerId, Given> given;
  for (auto next = idle_.begin(); next != idle_.end() && !workers.empty();) {
    const uint32_t file = *next++;  // it may go
    const File& missing = missing_.at(file);
    if (now < missing.not_before) continue;
    // The next one that has not failed at it, or else the next one; an answer makes room.
    const size_t turn = turn_++;
    std::optional<WorkerId> chosen;
    bool full = true, waits = false;
    for (size_t i = 0; i < workers.size(); ++i) {
      const WorkerId worker = workers[(turn + i) % workers.size()];
      const bool failed = missing.failed_by.contains(worker);
      if (const auto reader = readers_.find(worker);
          reader != readers_.end() && reader->second.open.size() >= kMostOpen) {
        waits |= !failed;
        continue;
      }
      full = false;
      if (!chosen.has_value() || !failed) chosen = worker;
      if (!failed) break;
    }
    if (full) break;
    if (waits && missing.failed_by.contains(*chosen)) continue;
    Open(file, *chosen, now, &given[*chosen]);
  }
  std::vector<Given> all;
  for (auto& [worker, its] : given) all.push_back(std::move(its));
  GiveHelp(workers, now, &all);
  return all;
}

void FileScan::GiveHelp(const std::vector<WorkerId>& workers, absl::Time now,
                        std::vector<Given>* given) {
  const auto is_late = [&](WorkerId worker) {
    return now - readers_.at(worker).last_answer >= patience_;
  };
  std::set<uint32_t> late;
  for (const auto& [worker, reader] : readers_) {
    if (!is_late(worker)) continue;
    for (const uint32_t file : reader.open) {
      const auto missing = missing_.find(file);
      if (missing == missing_.end()) continue;
      const std::set<WorkerId>& by = missing->second.open_by;
      if (std::all_of(by.begin(), by.end(), is_late)) late.insert(file);
    }
  }
  for (const WorkerId worker : workers) {
    if (late.empty()) return;
    if (readers_.contains(worker)) continue;
    const auto file = std::find_if(late.begin(), late.end(), [&](uint32_t f) {
      return !missing_.at(f).failed_by.contains(worker);
    });
    if (file == late.end()) continue;
    given->push_back({.helps = true});
    Open(*file, worker, now, &given->back());
    late.erase(file);
  }
}

void FileScan::Open(uint32_t file, WorkerId worker, absl::Time now, Given* given) {
  given->worker = worker;
  given->files.push_back(file);
  missing_.at(file).open_by.insert(worker);
  idle_.erase(file);
  const auto [reader, added] = readers_.try_emplace(worker);
  reader->second.open.insert(file);
  if (added) {
    reader->second.last_answer = now;
    reader->second.report_after = patience_;
  }
}

void FileScan::Close(uint32_t file, WorkerId worker, absl::Time now) {
  const auto reader = readers_.find(worker);
  if (reader == readers_.end() || reader->second.open.erase(file) == 0) return;
  reader->second.last_answer = now;
  reader->second.report_after = patience_;
  if (reader->second.open.empty()) readers_.erase(reader);
  if (const auto missing = missing_.find(file); missing != missing_.end())
    missing->second.open_by.erase(worker);
}

bool FileScan::Counted(uint32_t file, WorkerId worker, absl::Time now) {
  Close(file, worker, now);
  idle_.erase(file);
  return missing_.erase(file) > 0;
}

absl::Status FileScan::Failed(uint32_t file, WorkerId worker, const CallError& error,
                              absl::Time now) {
  Close(file, worker, now);
  const auto missing = missing_.find(file);
  if (missing == missing_.end()) return absl::OkStatus();  // another worker could
  if (error.kind == pb::ERROR_USER) return error.status;
  missing->second.failed_by.insert(worker);
  if (error.answered() && ++missing->second.answers >= kMostAnswers) return error.status;
  Again(file, now);
  return absl::OkStatus();
}

void FileScan::Returned(uint32_t file, WorkerId worker, absl::Time now) {
  Close(file, worker, now);
  if (const auto missing = missing_.find(file); missing != missing_.end())
    missing->second.failed_by.insert(worker);
  Again(file, now);
}

void FileScan::Again(uint32_t file, absl::Time now) {
  const auto missing = missing_.find(file);
  if (missing == missing_.end() || !missing->second.open_by.empty()) return;
  idle_.insert(file);
  const int doubled = std::min(missing->second.failures++, 10);
  const absl::Duration pause = std::min(kFirstPause * (1 << doubled), kMostPause);
  // Jitter: what a lost worker had open is not all asked for at the same moment. The same in every
  // replay.
  const double share =
      UnitDouble(HashCombine(file, static_cast<uint64_t>(missing->second.failures)));
  missing->second.not_before = now + pause * (0.5 + 0.5 * share);
}

void FileScan::WorkerLost(WorkerId worker, absl::Time now) {
  const auto reader = readers_.find(worker);
  if (reader == readers_.end()) return;
  for (const uint32_t file : std::set<uint32_t>(reader->second.open)) {
    Close(file, worker, now);
    Again(file, now);
  }
}

absl::Time FileScan::alarm(absl::Time now) const {
  absl::Time alarm = absl::InfiniteFuture();
  for (const uint32_t file : idle_) {
    const absl::Time due = missing_.at(file).not_before;
    if (due > now) alarm = std::min(alarm, due);
  }
  return alarm;
}

std::vector<FileScan::Silence> FileScan::Silent(absl::Time now) {
  std::vector<Silence> silent;
  for (auto& [worker, reader] : readers_) {
    const absl::Duration lasts = now - reader.last_answer;
    if (lasts < reader.report_after) continue;
    reader.report_after = 2 * lasts;
    silent.push_back({worker, reader.open.size(), *reader.open.begin(), lasts});
  }
  return silent;
}

}  // namespace mu
