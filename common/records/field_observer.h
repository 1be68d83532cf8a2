// Who wants to see the values of fields as they stand in the files (of criteo_tsv, as columns have
// them): `coordinator stats`, `make-vocab` and the look for labels that none is positive. Training
// has none.
#pragma once

#include "absl/strings/string_view.h"

namespace mu {

class FieldObserver {
 public:
  virtual ~FieldObserver() = default;
  // A value of the column, before hashing, standardising and the like. An integer is its decimal
  // text.
  virtual void OnText(int column, absl::string_view text) = 0;
  virtual void OnNumber(int column, double number) = 0;
  virtual void OnMissing(int column) = 0;
};

}  // namespace mu
