// How often each text of one column stands in good records: `coordinator make-vocab`.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "common/records/field_observer.h"

namespace mu {

// Not thread safe.
class TextCounts final : public FieldObserver {
 public:
  explicit TextCounts(int column) : column_(column) {}

  void OnText(int column, absl::string_view text) override {
    if (column == column_) pending_.emplace_back(text);
  }
  void OnNumber(int column, double /*number*/) override { pending_numbers_ += column == column_; }
  void OnMissing(int /*column*/) override {}

  // After each record.
  void KeepRecord();
  void DropRecord();

  // Texts that stand there at least so often, the most frequent first, equally frequent ones by
  // their bytes. A text with a line end can be in no vocabulary and is left out.
  std::vector<std::pair<std::string, uint64_t>> Frequent(uint64_t min_count) const;
  size_t distinct() const { return counts_.size(); }
  uint64_t with_line_end() const;                // how many texts are left out for that
  uint64_t numbers() const { return numbers_; }  // values that are no texts

 private:
  const int column_;
  absl::flat_hash_map<std::string, uint64_t> counts_;
  uint64_t numbers_ = 0;
  // Of the record that is being read.
  std::vector<std::string> pending_;
  uint64_t pending_numbers_ = 0;
};

}  // namespace mu
