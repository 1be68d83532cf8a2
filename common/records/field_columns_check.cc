// What the columns of csv, jsonl and tfrecord may say.
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/records/field_columns.h"

namespace mu {
namespace {

using Column = pb::CsvColumnProto;

// Of a record, in a column of fixed size.
constexpr uint64_t kMaxValues = uint64_t{1} << 24;

// Numbers of data are within it, and what becomes of them is a float.
constexpr double kLargestFloat = std::numeric_limits<float>::max();

class ColumnCheck {
 public:
  ColumnCheck(const Column& column, FieldSyntax syntax) : column_(column), syntax_(syntax) {}

  absl::Status Run() const {
    MU_RETURN_IF_ERROR(CheckKind());
    MU_RETURN_IF_ERROR(CheckForm());
    return CheckNumbers();
  }

 private:
  absl::Status Wrong(absl::string_view problem) const {
    return absl::InvalidArgumentError(absl::StrCat("column ", column_.name(), ": ", problem));
  }

  absl::Status CheckKind() const {
    switch (column_.kind()) {
      case Column::NUMBER:
        break;
      case Column::ID:
        if (column_.buckets() < 0) return Wrong("buckets is negative");
        break;
      case Column::HASH:
      case Column::CROSS:
        if (column_.buckets() <= 0) return Wrong("a hashed column needs buckets above 0");
        break;
      case Column::LABEL:
        if (column_.positive().empty())
          return Wrong("a label needs the texts that count as 1 in `positive`");
        break;
      case Column::CLASS:
        return CheckClasses();
      case Column::VOCABULARY:
        if (column_.vocabulary().empty() && column_.vocabulary_file().empty())
          return Wrong("it needs the file of its vocabulary");
        break;
      case Column::BUCKET:
        return CheckBoundaries();
      case Column::TEXT:
        if (column_.length() > 0 || HasSeveralValues(column_))
          return Wrong("a text is the whole field");
        break;
      default:
        return Wrong("its kind is unknown");
    }
    return absl::OkStatus();
  }

  absl::Status CheckClasses() const {
    if (column_.classes().empty()) return Wrong("it needs its classes");
    const std::set<std::string> classes(column_.classes().begin(), column_.classes().end());
    if (static_cast<int>(classes.size()) != column_.classes_size())
      return Wrong("a class is named twice");
    return absl::OkStatus();
  }

  absl::Status CheckBoundaries() const {
    if (column_.boundaries().empty()) return Wrong("it needs the boundaries of its buckets");
    for (int i = 0; i < column_.boundaries_size(); ++i) {
      const double boundary = column_.boundaries(i);
      if (!std::isfinite(boundary) || (i > 0 && boundary <= column_.boundaries(i - 1)))
        return Wrong("its boundaries must be numbers that grow");
      if (std::abs(boundary) > kLargestFloat)
        return Wrong("its boundaries must be within a float's range (up to 3.4e38)");
    }
    return absl::OkStatus();
  }

  // One value, a list, a sequence or a shape.
  absl::Status CheckForm() const {
    const bool several = HasSeveralValues(column_);
    const bool typed = syntax_ == FieldSyntax::kTyped;
    if (typed ? !column_.separator().empty() || !column_.weight_separator().empty()
              : column_.list() || !column_.weight_field().empty()) {
      return Wrong(typed ? "separators are for csv; write list: true for several values"
                         : "list and weight_field are for jsonl and tfrecord; give a separator");
    }
    if (!several && (!column_.separator().empty() || column_.list()))
      return Wrong("a label or a cross has one value, no list");
    const bool number = column_.kind() == Column::NUMBER;
    const bool sized = column_.length() > 0 || column_.shape_size() > 0;
    if (number && several != sized) {
      return Wrong(sized
                       ? "several values need a separator (csv) or list: true"
                       : "only ids and hashed columns can be lists with a separator; give numbers "
                         "a shape or a length");
    }
    if (!number && column_.shape_size() > 0) return Wrong("only numbers have a shape");
    if (column_.length() > 0 && (!several || column_.shape_size() > 0))
      return Wrong("length is for a field of several values without a shape");
    uint64_t values = column_.length() == 0 ? 1 : column_.length();
    for (const int64_t size : column_.shape()) {
      if (size <= 0 || static_cast<uint64_t>(size) > kMaxValues / values)
        return Wrong("its shape must have sizes above 0, and at most 16,777,216 values");
      values *= static_cast<uint64_t>(size);
    }
    if (values > kMaxValues) return Wrong("its length must be at most 16,777,216");
    if (IsWeighted(column_) && (number || !several || sized))
      return Wrong("weights are for lists of ids");
    if (column_.weight_separator().size() > 1 ||
        (!column_.weight_separator().empty() && column_.weight_separator() == column_.separator()))
      return Wrong("weight_separator must be one character, another than separator");
    return absl::OkStatus();
  }

  absl::Status CheckNumbers() const {
    if (!std::isfinite(column_.missing_value())) return Wrong("missing_value is not finite");
    if (!std::isfinite(column_.mean())) return Wrong("mean is not finite");
    if (column_.has_stddev() && !(std::isfinite(column_.stddev()) && column_.stddev() > 0))
      return Wrong("stddev must be above 0");
    if (std::abs(column_.mean()) > kLargestFloat)
      return Wrong("mean must be within a float's range (up to 3.4e38)");
    if (column_.has_stddev() && (column_.stddev() > kLargestFloat ||
                                 column_.stddev() < std::numeric_limits<float>::denorm_min()))
      return Wrong("stddev must be within a float's range (from 1e-45 to 3.4e38)");
    if ((column_.has_mean() || column_.has_stddev()) && column_.kind() != Column::NUMBER)
      return Wrong("mean and stddev are for numbers");
    if (column_.padding() < 0 || column_.missing_id() < 0)
      return Wrong("padding and missing_id are ids, from 0");
    return absl::OkStatus();
  }

  const Column& column_;
  const FieldSyntax syntax_;
};

absl::Status CheckCross(const Column& cross, const std::map<std::string, const Column*>& columns) {
  const auto wrong = [&](absl::string_view problem) {
    return absl::InvalidArgumentError(absl::StrCat("column ", cross.name(), ": ", problem));
  };
  if (cross.of_size() < 2) return wrong("a cross needs at least two columns in `of`");
  for (const std::string& name : cross.of()) {
    const auto found = columns.find(name);
    if (found == columns.end())
      return wrong(absl::StrCat("`of` names ", name, ", which is no column"));
    const Column::Kind kind = found->second->kind();
    if (kind == Column::CROSS || kind == Column::TEXT || HasSeveralValues(*found->second))
      return wrong(absl::StrCat("`of` names ", name,
                                ", but only columns of one value, no crosses or copied texts "
                                "themselves, can be crossed"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckFieldColumns(const FieldColumnList& columns, FieldSyntax syntax) {
  if (columns.empty()) return absl::InvalidArgumentError("no columns are named");
  std::map<std::string, const Column*> by_name;
  for (const Column& column : columns) {
    if (column.name().empty()) return absl::InvalidArgumentError("a column has no name");
    MU_RETURN_IF_ERROR(ColumnCheck(column, syntax).Run());
    if (!by_name.emplace(column.name(), &column).second) {
      return absl::InvalidArgumentError(absl::StrCat("two columns have the name ", column.name()));
    }
  }
  if (const std::vector<NameClash> clashes = NameClashesOf(columns); !clashes.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(ToText(clashes[0], columns), "; ", kNameClashRemedy));
  }
  for (const Column& column : columns) {
    if (column.kind() == Column::CROSS) {
      MU_RETURN_IF_ERROR(CheckCross(column, by_name));
    } else if (!column.of().empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("column ", column.name(), ": `of` is for crosses"));
    }
  }
  return absl::OkStatus();
}

}  // namespace mu
