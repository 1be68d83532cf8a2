#include "common/records/text_counts.h"

#include <algorithm>

namespace mu {
namespace {

bool HasLineEnd(const std::string& text) { return text.find_first_of("\r\n") != std::string::npos; }

}  // namespace

void TextCounts::KeepRecord() {
  for (const std::string& text : pending_) ++counts_[text];
  numbers_ += pending_numbers_;
  DropRecord();
}

void TextCounts::DropRecord() {
  pending_.clear();
  pending_numbers_ = 0;
}

std::vector<std::pair<std::string, uint64_t>> TextCounts::Frequent(uint64_t min_count) const {
  std::vector<std::pair<std::string, uint64_t>> frequent;
  for (const auto& [text, count] : counts_) {
    if (count >= min_count && !HasLineEnd(text)) frequent.emplace_back(text, count);
  }
  std::sort(frequent.begin(), frequent.end(), [](const auto& a, const auto& b) {
    return a.second != b.second ? a.second > b.second : a.first < b.first;
  });
  return frequent;
}

uint64_t TextCounts::with_line_end() const {
  return static_cast<uint64_t>(std::count_if(
      counts_.begin(), counts_.end(), [](const auto& entry) { return HasLineEnd(entry.first); }));
}

}  // namespace mu
