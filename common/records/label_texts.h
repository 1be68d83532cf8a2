// The texts that labels have in the files, for saying why none is positive.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "common/records/field_observer.h"
#include "proto/dataset.pb.h"

namespace mu {

class LabelTexts final : public FieldObserver {
 public:
  struct Found {
    std::vector<std::string> positive;  // that the column names
    uint64_t positives = 0;
    uint64_t others = 0;             // not missing
    uint64_t missing = 0;            // which count as 0
    std::vector<std::string> texts;  // of the others, the first few that differ
  };

  // Looks at TextLabelsOf the dataset.
  explicit LabelTexts(const muster::DatasetProto& dataset);

  void OnText(int column, absl::string_view text) override;
  void OnNumber(int /*column*/, double /*number*/) override {}
  void OnMissing(int column) override;

  // By the name of the column.
  std::map<std::string, Found> found() const;
  bool AllHavePositives() const;  // every column: also where there is none

 private:
  std::map<int, std::pair<std::string, Found>> by_column_;
};

void Add(const std::map<std::string, LabelTexts::Found>& more,
         std::map<std::string, LabelTexts::Found>* all);

// "\"a\", \"b\"".
std::string QuotedTexts(const std::vector<std::string>& texts);
bool HasNoPositive(const LabelTexts::Found& found);  // but labels, or missing ones
// "none of 100 labels is one of its `positive` texts, \"yes\"; they are \"no\", \" yes\"", and what
// to do about it where that is plain.
std::string NoneIsPositive(const LabelTexts::Found& found);
// A text is a positive one but for spaces, a dot at its end, case, or how the number is written:
// the data cannot be meant like this.
bool IsNearlyPositive(const LabelTexts::Found& found);

}  // namespace mu
