#include "psserver/core/view_table.h"

#include <algorithm>

namespace mu {
namespace {

// Copies of requests that are older than so many views are hardly on their way any more.
constexpr size_t kRemembered = 1024;

}  // namespace

void ViewTable::TakeEpoch(uint64_t epoch) {
  if (epoch <= epoch_) return;
  epoch_ = epoch;
  views_.clear();
  dropped_.clear();
  given_up_ = 0;
}

ViewTable::Ask ViewTable::AskLoad(uint64_t view, const std::string& content, Load* load) {
  if (dropped(view)) return Ask::kDropped;
  View& there = views_.try_emplace(view, View{content}).first->second;
  if (there.content != content) return Ask::kOther;
  if (there.load != 0) return Ask::kWait;
  if (there.loaded && there.loaded_partitions == partitions_) return Ask::kIsHere;
  there.load = ++loads_;
  there.load_partitions = partitions_;
  *load = {view, there.load};
  return Ask::kLoad;
}

ViewTable::View* ViewTable::Loading(const Load& load) {
  const auto it = views_.find(load.view);
  return it == views_.end() || it->second.load != load.number ? nullptr : &it->second;
}

bool ViewTable::SetBytes(const Load& load, uint64_t bytes) {
  View* const view = Loading(load);
  if (view == nullptr) return false;
  view->load_bytes = bytes;
  return true;
}

bool ViewTable::EndLoad(const Load& load, bool ok) {
  View* const view = Loading(load);
  if (view == nullptr) return false;
  if (ok) {
    view->loaded = true;
    view->loaded_partitions = view->load_partitions;
    view->bytes = view->load_bytes;
  }
  view->load = view->load_bytes = 0;
  // Nothing is known of its checkpoint then: the next request may name another one.
  if (!view->loaded) views_.erase(load.view);
  return ok;
}

void ViewTable::Drop(uint64_t view) {
  views_.erase(view);
  if (dropped(view)) return;
  dropped_.push_back(view);
  if (dropped_.size() > kRemembered) dropped_.pop_front();
}

bool ViewTable::dropped(uint64_t view) const {
  return std::find(dropped_.begin(), dropped_.end(), view) != dropped_.end();
}

void ViewTable::GiveUpAll() {
  views_.clear();
  given_up_ = loads_;
}

bool ViewTable::is_loading(const Load& load) const {
  const auto it = views_.find(load.view);
  return it != views_.end() && it->second.load == load.number;
}

bool ViewTable::given_up(const Load& load) const {
  return load.number <= given_up_ && !dropped(load.view);
}

bool ViewTable::has(uint64_t view) const {
  const auto it = views_.find(view);
  return it != views_.end() && it->second.loaded;
}

uint64_t ViewTable::BytesOf(uint64_t view) const {
  const auto it = views_.find(view);
  return it == views_.end() ? 0 : it->second.bytes;
}

uint64_t ViewTable::bytes() const {
  uint64_t bytes = loading_bytes();
  for (const auto& [id, view] : views_) bytes += view.bytes;
  return bytes;
}

uint64_t ViewTable::bytes_without(const Load& load) const {
  return bytes() - (is_loading(load) ? views_.at(load.view).load_bytes : 0);
}

uint64_t ViewTable::loading_bytes() const {
  uint64_t bytes = 0;
  for (const auto& [id, view] : views_) bytes += view.load_bytes;
  return bytes;
}

uint64_t ViewTable::loaded() const {
  return static_cast<uint64_t>(
      std::count_if(views_.begin(), views_.end(), [](const auto& v) { return v.second.loaded; }));
}

}  // namespace mu
