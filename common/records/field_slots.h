// Which named fields of a record the columns are read from, for formats whose fields have names.
#pragma once

#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "common/records/field_columns.h"

namespace mu {

// Immutable, therefore thread safe.
class FieldSlots {
 public:
  explicit FieldSlots(const FieldColumns& columns);

  int size() const { return static_cast<int>(slots_.size()); }
  // -1: no column is read from it.
  int Find(absl::string_view field) const {
    const auto found = slots_.find(field);
    return found == slots_.end() ? -1 : found->second;
  }
  int of(int column) const { return of_[static_cast<size_t>(column)]; }  // -1: a cross
  // -1: its values have no weights.
  int weights_of(int column) const { return weights_of_[static_cast<size_t>(column)]; }

 private:
  int Slot(const std::string& field) {
    return slots_.emplace(field, static_cast<int>(slots_.size())).first->second;
  }

  absl::flat_hash_map<std::string, int> slots_;
  std::vector<int> of_, weights_of_;
};

}  // namespace mu
