#include "common/records/field_columns.h"

#include <algorithm>
#include <charconv>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/records/record_parser.h"

namespace mu {
namespace {

using Column = pb::CsvColumnProto;

struct Scratch {
  std::vector<int64_t> ints;
  std::vector<float> floats;
  std::vector<uint64_t> crossed;
};

Scratch& OfThisThread() {
  static thread_local Scratch scratch;
  return scratch;
}

// The shortest text that gives the same float again.
std::string TextOf(float value) {
  char text[32];
  return std::string(text, std::to_chars(text, text + sizeof(text), value).ptr);
}

template <typename T>
void CopyPadded(const std::vector<T>& values, bool from_end, size_t length, T padding, T* out) {
  const size_t count = std::min(values.size(), length);
  const auto begin = from_end ? values.end() - static_cast<std::ptrdiff_t>(count) : values.begin();
  std::copy_n(begin, count, out);
  std::fill(out + count, out + length, padding);
}

}  // namespace

absl::StatusOr<std::shared_ptr<const FieldColumns>> FieldColumns::Create(
    const FieldColumnList& columns) {
  auto all = std::make_shared<FieldColumns>();
  int target = 0;
  for (const Column& proto : columns) {
    if (proto.kind() == Column::VOCABULARY && proto.vocabulary().empty()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "column ", proto.name(), ": the texts of its vocabulary ", proto.vocabulary_file(),
          " are not in the dataset; the coordinator puts them there"));
    }
    Entry& entry = all->columns_.emplace_back(proto);
    entry.target = target++;
    entry.weighted = IsWeighted(proto);
    entry.values = proto.length();
    if (proto.length() > 0) {
      entry.form = Form::kSequence;
      ++target;
    } else if (proto.shape_size() > 0) {
      entry.form = Form::kShape;
      entry.values = 1;
      for (const int64_t size : proto.shape()) entry.values *= static_cast<size_t>(size);
    } else if (HasSeveralValues(proto)) {
      entry.form = Form::kList;
    } else if (proto.kind() == Column::TEXT) {
      entry.form = Form::kText;
    }
  }
  for (Entry& entry : all->columns_) {
    for (const std::string& name : entry.rules.proto().of()) {
      for (size_t i = 0; i < all->columns_.size(); ++i) {
        if (all->columns_[i].rules.name() != name) continue;
        entry.of.push_back(static_cast<int>(i));
        all->columns_[i].crossed = true;
        all->has_crosses_ = true;
      }
    }
  }
  return all;
}

FieldRow::FieldRow(const FieldColumns& columns, ColumnSet* row, std::string* error)
    : all_(columns),
      columns_(row),
      error_(error),
      observer_(row->observer()),
      ints_(OfThisThread().ints),
      floats_(OfThisThread().floats),
      crossed_(OfThisThread().crossed) {
  if (all_.has_crosses_) crossed_.resize(all_.columns_.size());
}

void FieldRow::Observe(int column, int64_t value) {
  const std::string decimal = std::to_string(value);
  observer_->OnText(column, decimal);
}

void FieldRow::NoteForCross(int column, int64_t value) {
  const std::string decimal = std::to_string(value);
  NoteForCross(column, absl::string_view(decimal));
}

bool FieldRow::SetText(const FieldColumns::Entry& entry, int64_t value) {
  return SetText(entry, absl::string_view(std::to_string(value)));
}

bool FieldRow::SetText(const FieldColumns::Entry& entry, float value) {
  return SetText(entry, absl::string_view(TextOf(value)));
}

void FieldRow::NoteForCross(int column, float value) {
  NoteForCross(column, absl::string_view(TextOf(value)));
}

void FieldRow::Begin(int /*column*/) {
  ints_.clear();
  floats_.clear();
}

bool FieldRow::AddId(const FieldColumns::Entry& entry, int64_t id, float weight) {
  if (entry.form == FieldColumns::Form::kSequence) {
    ints_.push_back(id);
  } else if (entry.weighted) {
    columns_->Append(entry.target, id, weight);
  } else {
    columns_->Append(entry.target, id);
  }
  return true;
}

bool FieldRow::AddMissing(int column) {
  const FieldColumns::Entry& entry = Of(column);
  if (!entry.rules.is_ids()) floats_.push_back(entry.rules.MissingFloat());
  return true;
}

bool FieldRow::EndSequence(const FieldColumns::Entry& entry) {
  const Column& proto = entry.rules.proto();
  const bool from_end = proto.truncate() == Column::TRUNCATE_BEGIN;
  if (entry.rules.is_ids()) {
    CopyPadded(ints_, from_end, entry.values, proto.padding(), columns_->Ints(entry.target));
  } else {
    CopyPadded(floats_, from_end, entry.values, proto.missing_value(),
               columns_->Floats(entry.target));
  }
  *columns_->Ints(entry.target + 1) =
      static_cast<int64_t>(std::min(std::max(ints_.size(), floats_.size()), entry.values));
  return true;
}

bool FieldRow::End(int column) {
  const FieldColumns::Entry& entry = Of(column);
  if (entry.form == FieldColumns::Form::kList) return true;
  if (entry.form == FieldColumns::Form::kSequence) return EndSequence(entry);
  if (floats_.size() != entry.values) {
    *error_ = absl::StrCat("column ", entry.rules.name(), ": has ", floats_.size(),
                           " values, but its shape has ", entry.values);
    return false;
  }
  std::copy(floats_.begin(), floats_.end(), columns_->Floats(entry.target));
  return true;
}

bool FieldRow::Missing(int column) {
  const FieldColumns::Entry& entry = Of(column);
  if (entry.form == FieldColumns::Form::kText) return SetText(entry, absl::string_view());
  if (observer_ != nullptr) observer_->OnMissing(column);
  if (entry.rules.proto().required()) {
    *error_ = absl::StrCat("column ", entry.rules.name(), ": is missing, but required");
    return false;
  }
  if (entry.crossed) NoteCross(column, BucketHash::kMissing);
  switch (entry.form) {
    case FieldColumns::Form::kList:
      return true;
    case FieldColumns::Form::kSequence:
      Begin(column);
      return EndSequence(entry);
    case FieldColumns::Form::kShape:
      std::fill_n(columns_->Floats(entry.target), entry.values, entry.rules.MissingFloat());
      return true;
    default:
      break;
  }
  if (!entry.rules.is_ids()) {
    *columns_->Floats(entry.target) = entry.rules.MissingFloat();
    return true;
  }
  if (entry.rules.MissingId(columns_->Ints(entry.target))) return true;
  *error_ = absl::StrCat("column ", entry.rules.name(),
                         ": is missing, and nothing stands for a missing id; give missing_id");
  return false;
}

bool FieldRow::Finish() {
  if (!all_.has_crosses_) return true;
  for (const FieldColumns::Entry& entry : all_.columns_) {
    if (entry.of.empty()) continue;
    uint64_t combined = crossed_[static_cast<size_t>(entry.of[0])];
    for (size_t i = 1; i < entry.of.size(); ++i)
      combined = HashCombine(combined, crossed_[static_cast<size_t>(entry.of[i])]);
    *columns_->Ints(entry.target) = entry.rules.OfCross(combined);
  }
  return true;
}

}  // namespace mu
