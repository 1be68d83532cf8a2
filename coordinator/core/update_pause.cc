#include "coordinator/core/update_pause.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace mu {
namespace {

constexpr uint64_t kPausePercent = 90, kResumePercent = 75;

double Share(const UpdatePause::Memory& memory) {
  return memory.most_bytes == 0
             ? 0
             : static_cast<double>(memory.bytes) / static_cast<double>(memory.most_bytes);
}

std::string Amount(const UpdatePause::Memory& memory) {
  constexpr double kMb = 1 << 20;
  return absl::StrFormat("%.2f of at most %.2f MB", static_cast<double>(memory.bytes) / kMb,
                         static_cast<double>(memory.most_bytes) / kMb);
}

}  // namespace

bool UpdatePause::paused(uint64_t more) const {
  if (paused_ || more == 0) return paused_;
  return !Below({own_.bytes + more, own_.most_bytes}, kPausePercent);
}

UpdatePause::Change UpdatePause::ServerReports(uint32_t server, const Memory& memory) {
  const auto [it, added] = servers_.try_emplace(server, memory);
  if (!added) Count(std::exchange(it->second, memory), false);
  Count(memory, true);
  if (Below(memory, 100))
    std::erase_if(refused_, [&](const auto& r) { return r.second == server; });
  return Update();
}

UpdatePause::Change UpdatePause::ServerRefused(uint32_t server, FunctionId function) {
  refused_[function] = server;
  return Update();
}

UpdatePause::Change UpdatePause::ServerGone(uint32_t server) {
  if (const auto gone = servers_.extract(server)) Count(gone.mapped(), false);
  std::erase_if(refused_, [&](const auto& r) { return r.second == server; });
  return Update();
}

UpdatePause::Change UpdatePause::CoordinatorKeeps(const Memory& memory) {
  own_ = memory;
  return Update();
}

void UpdatePause::Count(const Memory& memory, bool added) {
  const auto count = [&](uint64_t percent, size_t* servers) {
    if (Below(memory, percent)) return;
    *servers += added ? 1 : size_t(-1);
  };
  count(kResumePercent, &not_below_resume_);
  count(kPausePercent, &not_below_pause_);
}

UpdatePause::Change UpdatePause::Update() {
  const bool before = paused_;
  const size_t full = before ? not_below_resume_ : not_below_pause_;
  paused_ = !refused_.empty() || full > 0 || !Below(own_, before ? kResumePercent : kPausePercent);
  if (paused_ == before) return Change::kNone;
  return paused_ ? Change::kPaused : Change::kResumed;
}

std::string UpdatePause::Describe() const {
  if (!refused_.empty()) {
    return absl::StrCat("server ", refused_.begin()->second,
                        " has no room to remember applied updates (psserver --applied_memory)");
  }
  const auto fullest = std::max_element(
      servers_.begin(), servers_.end(),
      [](const auto& a, const auto& b) { return Share(a.second) < Share(b.second); });
  if (fullest == servers_.end() || Share(own_) > Share(fullest->second)) {
    return absl::StrCat("the coordinator keeps ", Amount(own_), " of functions for repeats");
  }
  return absl::StrCat("server ", fullest->first, " remembers ", Amount(fullest->second),
                      " of applied updates");
}

}  // namespace mu
