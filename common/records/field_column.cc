#include "common/records/field_column.h"

#include <algorithm>
#include <charconv>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status.h"
#include "common/graph/dataset_schema.h"
#include "common/records/parse_number.h"
#include "common/records/record_parser.h"

namespace mu {
namespace {

using Column = pb::CsvColumnProto;

class Decimal {
 public:
  explicit Decimal(int64_t value)
      : end_(std::to_chars(digits_, digits_ + sizeof(digits_), value).ptr) {}
  absl::string_view text() const {
    return absl::string_view(digits_, static_cast<size_t>(end_ - digits_));
  }

 private:
  char digits_[20];
  const char* const end_;
};

// What to do about a text that would be good without the spaces around it.
constexpr absl::string_view kTrim = "; it has spaces around it: write trim: true";

}  // namespace

FieldColumn::FieldColumn(const Column& proto)
    : proto_(proto),
      is_ids_(IsIds(proto)),
      standardises_(proto.has_mean() || proto.has_stddev()),
      mean_(proto.mean()),
      stddev_(proto.has_stddev() ? proto.stddev() : 1),
      positive_(proto.positive().begin(), proto.positive().end()) {
  const bool is_vocabulary = proto.kind() == Column::VOCABULARY;
  if (proto.kind() == Column::HASH || proto.kind() == Column::CROSS) {
    hash_ = std::make_unique<BucketHash>(proto.has_seed() ? proto.seed() : HashString(proto.name()),
                                         static_cast<uint64_t>(proto.buckets()));
  } else if (is_vocabulary && proto.oov_buckets() > 0) {
    hash_ = std::make_unique<BucketHash>(0, proto.oov_buckets());
  }
  for (int i = 0; i < proto.classes_size(); ++i) classes_.emplace(proto.classes(i), i);
  if (is_vocabulary) vocabulary_ = std::make_unique<Vocabulary>(proto.vocabulary());
  proto_.clear_vocabulary();
}

int64_t FieldColumn::BucketOf(double value) const {
  const auto& boundaries = proto_.boundaries();
  return std::upper_bound(boundaries.begin(), boundaries.end(), value) - boundaries.begin();
}

// A boundary that is no float, such as 0.7, is met by the float nearest to it, as by its text.
int64_t FieldColumn::BucketOf(float value) const {
  const auto& boundaries = proto_.boundaries();
  const auto below = [](float number, double boundary) {
    return number < static_cast<float>(boundary);
  };
  return std::upper_bound(boundaries.begin(), boundaries.end(), value, below) - boundaries.begin();
}

float FieldColumn::Standardised(double value) const {
  return static_cast<float>(standardises_ ? (value - mean_) / stddev_ : value);
}

bool FieldColumn::CheckId(int64_t id, absl::string_view text, std::string* error) const {
  if (id < 0) return WrongField(name(), text, "is negative, but ids begin at 0", error);
  if (proto_.buckets() == 0 || id < proto_.buckets()) return true;
  return WrongField(
      name(), text,
      absl::StrCat("is not below ", proto_.buckets(),
                   ", the bound of its ids (the column's `buckets`, or the rows of the model's "
                   "table)"),
      error);
}

bool FieldColumn::ToClass(absl::string_view text, int64_t* id, std::string* error) const {
  constexpr int kShown = 8;
  auto found = classes_.find(text);
  if (found != classes_.end()) {
    *id = found->second;
    return true;
  }
  const auto& classes = proto_.classes();
  const bool trim = classes_.contains(absl::StripAsciiWhitespace(text));
  return WrongField(
      name(), text,
      absl::StrCat(
          "is none of the column's classes: ",
          absl::StrJoin(classes.begin(), classes.begin() + std::min(kShown, classes.size()), ", "),
          classes.size() > kShown ? ", ..." : "", trim ? kTrim : ""),
      error);
}

bool FieldColumn::ToVocabulary(absl::string_view text, int64_t* id, std::string* error) const {
  *id = vocabulary_->Find(text);
  if (*id >= 0) return true;
  if (hash_ != nullptr) {
    *id = vocabulary_->size() + hash_->OfText(text);
    return true;
  }
  const bool trim = vocabulary_->Find(absl::StripAsciiWhitespace(text)) >= 0;
  return WrongField(name(), text,
                    absl::StrCat("is none of the ", vocabulary_->size(),
                                 " texts of its vocabulary; give texts that are not there "
                                 "oov_buckets",
                                 trim ? kTrim : ""),
                    error);
}

bool FieldColumn::ToId(absl::string_view text, int64_t* id, std::string* error) const {
  switch (proto_.kind()) {
    case Column::HASH:
      *id = hash_->OfText(text);
      return true;
    case Column::CLASS:
      return ToClass(text, id, error);
    case Column::VOCABULARY:
      return ToVocabulary(text, id, error);
    case Column::BUCKET: {
      double value = 0;
      if (!Parse(text, &value, error)) return false;
      *id = BucketOf(value);
      return true;
    }
    default:
      if (!absl::SimpleAtoi(text, id)) return WrongField(name(), text, "is not an integer", error);
      return CheckId(*id, text, error);
  }
}

bool FieldColumn::ToId(int64_t value, int64_t* id, std::string* error) const {
  if (proto_.kind() == Column::BUCKET) {
    *id = BucketOf(static_cast<double>(value));
    return true;
  }
  const Decimal decimal(value);
  if (proto_.kind() != Column::ID) return ToId(decimal.text(), id, error);
  *id = value;
  return CheckId(value, decimal.text(), error);
}

bool FieldColumn::ToId(float value, int64_t* id, std::string* error) const {
  if (proto_.kind() != Column::BUCKET) {
    *error = absl::StrCat("column ", name(),
                          ": the feature holds floats; only columns of kind number and bucket read "
                          "them");
    return false;
  }
  float checked = 0;
  if (!ToFloat(value, &checked, error)) return false;
  *id = BucketOf(checked);
  return true;
}

template <typename T>
bool FieldColumn::Parse(absl::string_view text, T* value, std::string* error) const {
  if (ParseNumber(text, value)) return true;
  const bool trim = ParseNumber(absl::StripAsciiWhitespace(text), value);
  return WrongField(name(), text, absl::StrCat("is not a finite number", trim ? kTrim : ""), error);
}

bool FieldColumn::ToFloat(absl::string_view text, float* value, std::string* error) const {
  if (proto_.kind() == Column::LABEL) {
    *value = positive_.contains(text) ? 1.0f : 0.0f;
    return true;
  }
  if (!standardises_) return Parse(text, value, error);
  double number = 0;
  if (!Parse(text, &number, error)) return false;
  *value = Standardised(number);
  return true;
}

bool FieldColumn::ToFloat(int64_t integer, float* value, std::string* error) const {
  if (proto_.kind() == Column::LABEL) return ToFloat(Decimal(integer).text(), value, error);
  // A large one is not rounded to a double first: it becomes what its text becomes.
  *value = standardises_ ? Standardised(static_cast<double>(integer)) : static_cast<float>(integer);
  return true;
}

bool FieldColumn::ToFloat(float number, float* value, std::string* error) const {
  if (proto_.kind() == Column::LABEL) {
    *error = absl::StrCat("column ", name(),
                          ": the feature holds floats; a label's texts are bytes or int64");
    return false;
  }
  if (!(number - number == 0)) {  // NaN or infinite
    *error = absl::StrCat("column ", name(), ": ", number, " is not a finite number");
    return false;
  }
  *value = Standardised(number);
  return true;
}

bool FieldColumn::MissingId(int64_t* id) const {
  if (proto_.kind() == Column::HASH) {
    *id = hash_->OfMissing();
  } else if (proto_.has_missing_id()) {
    *id = proto_.missing_id();
  } else if (proto_.kind() == Column::BUCKET) {
    *id = proto_.boundaries_size() + 1;
  } else if (proto_.kind() == Column::VOCABULARY && proto_.oov_buckets() > 0) {
    *id = vocabulary_->size();
  } else {
    return false;
  }
  return true;
}

float FieldColumn::MissingFloat() const {
  return proto_.kind() == Column::LABEL ? 0.0f : proto_.missing_value();
}

}  // namespace mu
