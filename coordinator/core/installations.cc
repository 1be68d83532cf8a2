#include "coordinator/core/installations.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "coordinator/core/protections.h"

namespace mu {

std::string Describe(const InstallPart& part) {
  if (part.kind == InstallPart::Kind::kRouting) return "routing";
  const bool dataset = part.kind == InstallPart::Kind::kDataset;
  return absl::StrCat(dataset ? "dataset " : "function ", part.id);
}

void Installations::CatalogChanged(uint64_t version, const std::vector<InstallPart>& parts) {
  version_ = version;
  for (const InstallPart& part : parts) parts_[part] = version;
}

void Installations::Want(WorkerId id) {
  Worker& worker = workers_[id];
  worker.withdrawn = false;
  if (worker.waits || under_way_.contains(id) || worker.installed == version_) return;
  worker.waits = true;
  queue_.push_back(id);
}

void Installations::Forgot(WorkerId id) {
  Worker& worker = workers_[id];
  worker.installed = MU_BROKEN(not_reinstalled) ? version_ : 0;
  worker.forgot = !worker.left.empty();
}

void Installations::Withdraw(WorkerId id) {
  const auto it = workers_.find(id);
  if (it == workers_.end()) return;
  it->second.withdrawn = under_way_.contains(id);
  if (!std::exchange(it->second.waits, false)) return;
  queue_.erase(std::find(queue_.begin(), queue_.end(), id));
  it->second.left.clear();
  it->second.forgot = false;
}

void Installations::Lost(WorkerId id) {
  Withdraw(id);
  workers_.erase(id);
  under_way_.erase(id);
}

void Installations::Begin(Worker* worker) const {
  worker->brings = version_;
  for (const auto& [part, version] : parts_) {
    if (version > worker->installed) worker->left.push_back(part);
  }
  if (worker->left.empty()) worker->installed = version_;
}

std::vector<Installations::Given> Installations::Next(absl::Time now) {
  std::vector<Given> given;
  if (queue_.empty()) return given;
  const auto takes_place = [&](const auto& sent) { return now - sent.second < options_.patience; };
  auto taken =
      static_cast<size_t>(std::count_if(under_way_.begin(), under_way_.end(), takes_place));
  while (!queue_.empty() && taken < options_.most) {
    const WorkerId id = queue_.front();
    queue_.pop_front();
    Worker& worker = workers_.at(id);
    worker.waits = false;
    if (worker.left.empty()) Begin(&worker);
    if (worker.left.empty()) continue;
    under_way_[id] = now;
    given.push_back({id, worker.left.front()});
    ++taken;
  }
  return given;
}

std::optional<Installations::Sent> Installations::UnderWay(WorkerId id) const {
  const auto it = under_way_.find(id);
  if (it == under_way_.end()) return std::nullopt;
  return Sent{workers_.at(id).left.front(), it->second};
}

std::optional<Installations::Sent> Installations::Answered(WorkerId id) {
  const std::optional<Sent> sent = UnderWay(id);
  under_way_.erase(id);
  return sent;
}

bool Installations::Took(WorkerId id) {
  Worker& worker = workers_.at(id);
  worker.left.pop_front();
  const bool withdrawn = std::exchange(worker.withdrawn, false);
  if (!worker.left.empty() && withdrawn) {
    worker.left.clear();
    worker.forgot = false;
    return false;
  }
  if (!worker.left.empty()) {
    worker.waits = true;
    queue_.push_front(id);
    return false;
  }
  if (std::exchange(worker.forgot, false)) return false;
  worker.installed = worker.brings;
  return true;
}

void Installations::Failed(WorkerId id, bool wrong) {
  Worker& worker = workers_.at(id);
  worker.left.clear();
  worker.forgot = worker.withdrawn = false;
  if (wrong) worker.installed = worker.brings;
}

uint64_t Installations::installed(WorkerId id) const {
  const auto it = workers_.find(id);
  return it == workers_.end() ? 0 : it->second.installed;
}

absl::Time Installations::alarm(absl::Time now) const {
  absl::Time alarm = absl::InfiniteFuture();
  if (queue_.empty()) return alarm;
  for (const auto& [worker, sent] : under_way_) {
    if (sent + options_.patience > now) alarm = std::min(alarm, sent + options_.patience);
  }
  return alarm;
}

}  // namespace mu
