// From the fields of a record to the columns of a row, for csv, jsonl and tfrecord: these formats
// differ only in how they find a field's values.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/base/status.h"
#include "common/graph/dataset_schema.h"
#include "common/records/column_set.h"
#include "common/records/field_column.h"
#include "common/records/packed_text.h"

namespace mu {

// Which of CsvColumnProto's fields say that a field has several values, and weights.
enum class FieldSyntax {
  kText,   // separator, weight_separator; index
  kTyped,  // list, weight_field
};

// INVALID_ARGUMENT "column X: ...": what makes no sense. Vocabularies need not be read yet.
absl::Status CheckFieldColumns(const FieldColumnList& columns, FieldSyntax syntax);

// Immutable, therefore thread safe.
class FieldColumns {
 public:
  // The columns have passed CheckFieldColumns. INVALID_ARGUMENT: a vocabulary was not read.
  static absl::StatusOr<std::shared_ptr<const FieldColumns>> Create(const FieldColumnList& columns);

  int size() const { return static_cast<int>(columns_.size()); }
  const FieldColumn& column(int i) const { return columns_[static_cast<size_t>(i)].rules; }
  bool is_cross(int i) const { return column(i).proto().kind() == muster::CsvColumnProto::CROSS; }
  // Its field has several values: Begin, Add and End. Else it has one: Set.
  bool has_several(int i) const {
    const Form form = columns_[static_cast<size_t>(i)].form;
    return form != Form::kOne && form != Form::kText;
  }
  // It takes a text that is marked as missing as well, as it stands there.
  bool is_text(int i) const { return columns_[static_cast<size_t>(i)].form == Form::kText; }

 private:
  friend class FieldRow;
  enum class Form { kOne, kList, kSequence, kShape, kText };
  struct Entry {
    explicit Entry(const muster::CsvColumnProto& proto) : rules(proto) {}
    FieldColumn rules;
    Form form = Form::kOne;
    bool weighted = false;
    size_t values = 0;     // kShape, kSequence: of a record
    int target = 0;        // in the ColumnSet; of a sequence's lengths the one behind it
    bool crossed = false;  // some cross takes it
    std::vector<int> of;   // CROSS
  };

  std::vector<Entry> columns_;
  bool has_crosses_ = false;
};

// The row being filled. Cheap to make: its memory is that of the thread, so a thread has one at a
// time. Calls that return false leave the reason in *error.
class FieldRow {
 public:
  FieldRow(const FieldColumns& columns, ColumnSet* row, std::string* error);

  // Of a column whose field has one value. T: a text, int64_t or float.
  template <typename T>
  bool Set(int column, T value) {
    const FieldColumns::Entry& entry = Of(column);
    if (entry.form == FieldColumns::Form::kText) return SetText(entry, value);
    if (observer_ != nullptr) Observe(column, value);
    if (entry.crossed) NoteForCross(column, value);
    if (!entry.rules.is_ids())
      return entry.rules.ToFloat(value, columns_->Floats(entry.target), error_);
    int64_t* const id = columns_->Ints(entry.target);
    if (!entry.rules.ToId(value, id, error_)) return false;
    if (entry.crossed && entry.rules.crosses_id()) NoteCross(column, static_cast<uint64_t>(*id));
    return true;
  }

  // Of a column whose field has several.
  void Begin(int column);
  template <typename T>
  bool Add(int column, T value, float weight = 1.0f) {
    const FieldColumns::Entry& entry = Of(column);
    if (observer_ != nullptr) Observe(column, value);
    if (entry.rules.is_ids()) {
      int64_t id = 0;
      return entry.rules.ToId(value, &id, error_) && AddId(entry, id, weight);
    }
    return entry.rules.ToFloat(value, &floats_.emplace_back(), error_);
  }
  // An empty or null value: nothing in a list or a sequence of ids, missing_value among numbers.
  bool AddMissing(int column);
  bool End(int column);

  // The field is not there, or marked as missing.
  bool Missing(int column);

  // After all fields: the crosses.
  bool Finish();

 private:
  const FieldColumns::Entry& Of(int column) const {
    return all_.columns_[static_cast<size_t>(column)];
  }
  bool SetText(const FieldColumns::Entry& entry, absl::string_view text) {
    PackText(text, entry.target, columns_);
    return true;
  }
  bool SetText(const FieldColumns::Entry& entry, int64_t value);
  bool SetText(const FieldColumns::Entry& entry, float value);
  bool AddId(const FieldColumns::Entry& entry, int64_t id, float weight);
  bool EndSequence(const FieldColumns::Entry& entry);
  void NoteCross(int column, uint64_t value) { crossed_[static_cast<size_t>(column)] = value; }
  void NoteForCross(int column, absl::string_view text) {
    NoteCross(column, Of(column).rules.CrossOf(text));
  }
  void Observe(int column, absl::string_view text) { observer_->OnText(column, text); }
  void Observe(int column, int64_t value);
  void Observe(int column, float value) { observer_->OnNumber(column, value); }
  void NoteForCross(int column, int64_t value);
  void NoteForCross(int column, float value);

  const FieldColumns& all_;
  ColumnSet* const columns_;
  std::string* const error_;
  FieldObserver* const observer_;
  std::vector<int64_t>& ints_;      // of a sequence
  std::vector<float>& floats_;      // of a sequence or shape
  std::vector<uint64_t>& crossed_;  // what a cross takes of each column
};

}  // namespace mu
