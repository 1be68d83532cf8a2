// A JSON object a line (proto/dataset.proto, JsonlProto).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "common/records/field_columns.h"
#include "common/records/field_slots.h"
#include "common/records/json_scanner.h"
#include "common/records/record_parser.h"

namespace mu {

// Numbers are read as their text ("7" and 7 are the same id), true and false as these words, or as
// 1 and 0 where a number is wanted. An object, or an array where one value is wanted, is bad.
class JsonlParser final : public RecordParser {
 public:
  JsonlParser(const muster::JsonlProto& jsonl, std::shared_ptr<const FieldColumns> columns);

  bool Parse(absl::string_view record, ColumnSet* columns, std::string* error) const override;

 private:
  using Values = std::vector<JsonValue>;  // by slot

  bool Locate(absl::string_view record, Values* values, std::string* error) const;
  bool Store(int column, const Values& values, FieldRow* row, std::string* error) const;
  bool StoreSeveral(int column, const JsonValue& array, const JsonValue& weights, FieldRow* row,
                    std::string* error) const;
  // The text of a single value; *missing if it is null or a mark. False: it has none.
  bool TextOf(int column, const JsonValue& value, absl::string_view* text, bool* missing,
              std::string* error) const;

  const std::shared_ptr<const FieldColumns> columns_;
  const FieldSlots slots_;
  const absl::flat_hash_set<std::string> missing_;
};

}  // namespace mu
