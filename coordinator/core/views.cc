#include "coordinator/core/views.h"

#include <algorithm>
#include <utility>

#include "coordinator/core/protections.h"

namespace mu {

bool Views::Drop(ViewId view) {
  const auto it = views_.find(view);
  if (it == views_.end()) return true;
  if (it->second.asked) {
    it->second.wanted = it->second.loaded = false;
    it->second.tries = 0;
    return false;
  }
  views_.erase(it);
  return true;
}

bool Views::IsLoaded(ViewId view) const {
  const auto it = views_.find(view);
  return it != views_.end() && it->second.loaded;
}

std::optional<Views::Call> Views::Next(absl::Time now) {
  if (under_way_.has_value()) return std::nullopt;
  for (auto& [id, view] : views_) {
    if (view.loaded || now < view.not_before) continue;
    view.asked = true;
    under_way_ = Call{++attempts_, id, view.wanted};
    return under_way_;
  }
  return std::nullopt;
}

std::optional<Views::Call> Views::Answered(uint64_t attempt) {
  if (!under_way_.has_value() || under_way_->attempt != attempt) return std::nullopt;
  return std::exchange(under_way_, std::nullopt);
}

void Views::Loaded(ViewId id) {
  View& view = views_.at(id);
  view.loaded = view.wanted;  // it may have been dropped meanwhile
  view.tries = 0;
}

void Views::NotThere(ViewId view) {
  if (const auto it = views_.find(view); it != views_.end()) it->second.loaded = false;
}

void Views::ServersChanged() {
  under_way_.reset();
  for (auto& [id, view] : views_) {
    if (!MU_BROKEN(views_kept)) view.loaded = false;
    view.not_before = absl::InfinitePast();
    view.tries = 0;
  }
}

absl::Time Views::alarm(absl::Time now) const {
  absl::Time alarm = absl::InfiniteFuture();
  if (under_way_.has_value()) return alarm;
  for (const auto& [id, view] : views_) {
    if (!view.loaded && view.not_before > now) alarm = std::min(alarm, view.not_before);
  }
  return alarm;
}

}  // namespace mu
