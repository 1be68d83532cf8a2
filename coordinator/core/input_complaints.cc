#include "coordinator/core/input_complaints.h"

#include <algorithm>

namespace mu {
namespace {

// So many workers, or tries of one that is alone, make an input wrong.
constexpr size_t kEnough = 3;

}  // namespace

void InputComplaints::WorkerJoined(WorkerId worker) {
  WorkerLost(worker);  // what an earlier incarnation said
  up_[worker] = {};
}

void InputComplaints::WorkerLost(WorkerId worker) {
  up_.erase(worker);
  for (auto& [file, workers] : missing_) workers.erase(worker);
}

InputComplaints::Verdict InputComplaints::Missing(WorkerId worker, uint64_t dataset,
                                                  uint32_t file) {
  if (!up_.contains(worker)) return Verdict::kTryAgain;  // it comes late
  const File key{dataset, file};
  std::map<WorkerId, int>& said = missing_[key];
  const auto tries = static_cast<size_t>(++said[worker]);
  const bool read = read_.contains(key);
  if (up_.size() > 1) {
    if (!read && said.size() >= std::min(kEnough, up_.size())) return InputWrong(dataset);
  } else if (!IsAside(worker)) {
    if (tries < kEnough) return Verdict::kTryAgain;
    if (!read) return InputWrong(dataset);
  }
  return SetAside(worker, key);
}

InputComplaints::Verdict InputComplaints::Broken(WorkerId worker) {
  if (!up_.contains(worker)) return Verdict::kTryAgain;
  return SetAside(worker, std::nullopt);
}

void InputComplaints::Read(uint64_t dataset, uint32_t file) { read_.insert({dataset, file}); }

bool InputComplaints::IsAside(WorkerId worker) const {
  const auto it = up_.find(worker);
  return it != up_.end() && it->second.aside;
}

InputComplaints::Verdict InputComplaints::SetAside(WorkerId id, std::optional<File> lacks) {
  Worker& worker = up_.at(id);
  if (worker.aside) return Verdict::kTryElsewhere;
  worker = {.aside = true, .lacks = lacks};
  const bool none_left =
      std::all_of(up_.begin(), up_.end(), [](const auto& w) { return w.second.aside; });
  if (!none_left) return Verdict::kSetAside;
  return lacks.has_value() && AllLack(lacks->first) ? InputWrong(lacks->first) : Verdict::kNoneLeft;
}

bool InputComplaints::AllLack(uint64_t dataset) const {
  return std::all_of(up_.begin(), up_.end(), [&](const auto& entry) {
    const std::optional<File>& lacks = entry.second.lacks;
    return entry.second.aside && lacks.has_value() && lacks->first == dataset &&
           !read_.contains(*lacks);
  });
}

InputComplaints::Verdict InputComplaints::InputWrong(uint64_t dataset) {
  // The workers are well: other datasets are theirs again.
  for (auto& [id, worker] : up_) {
    if (!worker.aside || !worker.lacks.has_value() || worker.lacks->first != dataset) continue;
    worker = {};
    pardoned_.push_back(id);
  }
  std::erase_if(missing_, [&](const auto& entry) { return entry.first.first == dataset; });
  return Verdict::kInputWrong;
}

}  // namespace mu
