// The rules of the columns of a job's data sources, beyond which keys a kind and a format have
// (data_keys.h).
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/graph/dataset_schema.h"
#include "coordinator/cli/data_keys.h"
#include "coordinator/cli/job_validation.h"

namespace mu {
namespace {

class ColumnRules {
 public:
  ColumnRules(const pb::SourceProto& source, unsigned format, const pb::JobColumnProto& column,
              std::string key, std::vector<JobProblem>* problems)
      : source_(source),
        format_(format),
        column_(column),
        kind_(KindBitOf(column.kind())),
        key_(std::move(key)),
        problems_(problems) {}

  void Check() {
    const unsigned kinds = format_ == kNpyBit ? kNumberBit | kIdBit : unsigned{kAllKinds};
    if ((kind_ & kinds) == 0) {
      Add("kind",
          absl::StrCat("must be ", KindNames(kinds, "or"),
                       column_.kind().empty() ? "" : absl::StrCat(", not `", column_.kind(), "`")),
          "", true);
      return;
    }
    for (const ColumnKeyInfo& info : ColumnKeys()) {
      if (HasField(column_, info.key)) CheckKey(info);
    }
    if (format_ == kCsvBit && kind_ != kCrossBit) CheckField();
    if (format_ == kNpyBit) CheckNpy();
    CheckOfKind();
    CheckSeveral();
    CheckNumbers();
  }

 private:
  void CheckKey(const ColumnKeyInfo& info) {
    if ((info.formats & format_) == 0) {
      const absl::string_view key = info.key;
      Add(info.key,
          absl::StrCat("is for format ", FormatNames(info.formats), ", not for ", source_.format()),
          key == "separator" && format_ != kNpyBit ? "write list: true" : "remove it");
    } else if ((info.kinds & kind_) == 0) {
      Add(info.key, absl::StrCat("is for columns of kind ", KindNames(info.kinds)), "remove it");
    }
  }

  void CheckField() {
    const bool header = !source_.has_header() || source_.header();
    if (column_.has_index() && column_.has_field()) {
      Add("field", "stands beside `index`", "keep one of the two");
    } else if (column_.has_index() && column_.index() < 0) {
      Add("index", "must not be negative", "fields count from 0");
    } else if (!header && !column_.has_index()) {
      Add("index", "must be given where there is no header", "fields count from 0", true);
    }
  }

  void CheckNpy() {
    if (column_.files().empty())
      Add("files", "names no files", "write a list of paths or globs", true);
    for (int i = 0; i < column_.files_size(); ++i) {
      if (column_.files(i).empty())
        Add(absl::StrCat("files[", i, "]"), "must not be empty", "write a path or a glob");
    }
  }

  void CheckOfKind() {
    if ((kind_ & (kIdBit | kHashBit | kCrossBit)) != 0 && column_.has_buckets() &&
        column_.buckets() <= 0) {
      Add("buckets", "must be above 0",
          kind_ == kIdBit ? "leave it out for ids without a bound" : "leave it out for 100000");
    }
    if (kind_ == kLabelBit && column_.positive().empty())
      Add("positive", "must name the texts that mean 1", "write for example [\"1\"]", true);
    if (kind_ == kClassBit) CheckClasses();
    if (kind_ == kVocabularyBit && column_.vocabulary().empty()) {
      Add("vocabulary", "must name a file with one text a line",
          "`coordinator make-vocab` writes one", true);
    }
    if (kind_ == kBucketBit) CheckBoundaries();
    if (kind_ == kCrossBit) CheckCross();
  }

  void CheckClasses() {
    if (column_.classes().empty()) {
      Add("classes", "must name the texts in the order of their indices",
          "write for example [no, yes]", true);
    }
    std::set<std::string> seen;
    for (int i = 0; i < column_.classes_size(); ++i) {
      if (!seen.insert(column_.classes(i)).second) {
        Add(absl::StrCat("classes[", i, "]"),
            absl::StrCat("is `", column_.classes(i), "` a second time"), "remove it");
      }
    }
  }

  void CheckBoundaries() {
    if (column_.boundaries().empty())
      Add("boundaries", "names no numbers", "write for example [18, 25, 65]", true);
    for (int i = 0; i < column_.boundaries_size(); ++i) {
      if (i > 0 && !(column_.boundaries(i) > column_.boundaries(i - 1))) {
        Add(absl::StrCat("boundaries[", i, "]"), "must be above the one before it",
            "write them in growing order, each once");
      }
      CheckRange(absl::StrCat("boundaries[", i, "]"), column_.boundaries(i));
    }
  }

  void CheckCross() {
    if (column_.of_size() < 2)
      Add("of", "must name at least two columns", "write for example [age, job]", true);
    for (int i = 0; i < column_.of_size(); ++i) {
      const std::string item = absl::StrCat("of[", i, "]");
      const pb::JobColumnProto* found = nullptr;
      for (const pb::JobColumnProto& other : source_.columns()) {
        if (other.name() == column_.of(i)) found = &other;
      }
      if (found == nullptr) {
        Add(item, absl::StrCat("is `", column_.of(i), "`, which is no column"),
            "name columns of this list; add one for a field that is in none");
      } else if (found->has_separator() || found->list() || found->kind() == "cross") {
        Add(item, absl::StrCat("is `", column_.of(i), "`, which has several values or is a cross"),
            "cross columns of one value");
      }
    }
  }

  // A list, a sequence or a shape.
  void CheckSeveral() {
    const bool several = column_.has_separator() || column_.list();
    const char* const say = format_ == kCsvBit ? "separator" : "list";
    const std::string delimiter = source_.has_delimiter() ? source_.delimiter() : ",";
    const auto one_character = [&](const char* key, const std::string& text,
                                   const std::string& other) {
      if (text.size() == 1 && text != delimiter && text != other) return;
      Add(key,
          absl::StrCat("must be one character, another than `delimiter`",
                       other.empty() ? "" : " and `separator`"),
          "write for example \"|\"");
    };
    if (column_.has_separator() && format_ == kCsvBit && (kind_ & kSeveralKinds) != 0)
      one_character("separator", column_.separator(), "");
    if (column_.has_weight_separator() && format_ == kCsvBit)
      one_character("weight_separator", column_.weight_separator(), column_.separator());
    if (column_.has_length() && column_.length() == 0)
      Add("length", "must be above 0", "leave it out for a list of any length");
    const auto needs_several = [&](bool written, const char* key) {
      if (written && !several)
        Add(key, absl::StrCat("is for a field of several values"), absl::StrCat("add `", say, "`"));
    };
    needs_several(column_.has_length(), "length");
    needs_several(column_.has_weight_separator(), "weight_separator");
    needs_several(column_.has_weight_field(), "weight_field");
    if (format_ != kNpyBit) needs_several(column_.shape_size() > 0, "shape");
    if (column_.has_length() && column_.shape_size() > 0)
      Add("shape", "stands beside `length`", "keep one of the two");
    if (format_ != kNpyBit && kind_ == kIdBit && column_.shape_size() > 0)
      Add("shape", "is for numbers, and for ids of format npy", "write `length` for a sequence");
    for (int i = 0; i < column_.shape_size(); ++i) {
      if (column_.shape(i) == 0) Add(absl::StrCat("shape[", i, "]"), "must be above 0", "");
    }
    if (several && kind_ == kNumberBit && !column_.has_length() && column_.shape_size() == 0) {
      Add(say, "makes a list, but a list of numbers has a fixed size",
          "add shape: [N], or length: N for a sequence");
    }
    if (column_.has_length() && (column_.has_weight_separator() || column_.has_weight_field())) {
      Add(column_.has_weight_field() ? "weight_field" : "weight_separator",
          "is for lists, not for sequences", "remove it, or `length`");
    }
    for (const auto& [written, key] : {std::pair(column_.has_padding(), "padding"),
                                       std::pair(column_.has_truncate(), "truncate")}) {
      if (written && !column_.has_length()) Add(key, "is for sequences", "add `length`");
    }
    if (column_.has_missing_id() && several)
      Add("missing_id", "is for columns of one value: a missing list is empty", "remove it");
    if (column_.has_truncate() && column_.truncate() != "end" && column_.truncate() != "begin") {
      Add("truncate", absl::StrCat("must be end or begin, not `", column_.truncate(), "`"), "");
    }
  }

  // Numbers of the data are within a float's range, and become floats.
  void CheckRange(const std::string& key, double value) {
    if (std::abs(value) > std::numeric_limits<float>::max()) {
      Add(key, absl::StrCat("must be within a float's range (up to 3.4e38), not ", value), "");
    }
  }

  void CheckNumbers() {
    CheckRange("mean", column_.mean());
    CheckRange("stddev", column_.stddev());
    if (column_.has_stddev() && !(column_.stddev() > 0)) {
      Add("stddev", "must be above 0",
          "a column whose values are all equal tells nothing: leave it out");
    } else if (column_.has_stddev() &&
               column_.stddev() < std::numeric_limits<float>::denorm_min()) {
      Add("stddev",
          absl::StrCat("must be within a float's range (from 1e-45), not ", column_.stddev()), "");
    }
    if (column_.has_padding() && column_.padding() < 0)
      Add("padding", "must not be negative", "ids begin at 0");
    if (column_.has_missing_id() && column_.missing_id() < 0)
      Add("missing_id", "must not be negative", "ids begin at 0");
  }

  void Add(const std::string& key, std::string message, std::string remedy, bool required = false) {
    problems_->push_back(
        {absl::StrCat(key_, ".", key), std::move(message), std::move(remedy), required});
  }

  const pb::SourceProto& source_;
  const unsigned format_;
  const pb::JobColumnProto& column_;
  const unsigned kind_;
  const std::string key_;
  std::vector<JobProblem>* const problems_;
};

// As far as names and forms go.
FieldColumnList FormsOf(const pb::SourceProto& source) {
  FieldColumnList columns;
  for (const pb::JobColumnProto& from : source.columns()) {
    pb::CsvColumnProto* const column = columns.Add();
    const unsigned kind = KindBitOf(from.kind());
    column->set_name(from.name());
    column->set_kind(kind == kNumberBit  ? pb::CsvColumnProto::NUMBER
                     : kind == kLabelBit ? pb::CsvColumnProto::LABEL
                     : kind == kCrossBit ? pb::CsvColumnProto::CROSS
                                         : pb::CsvColumnProto::ID);
    column->set_separator(from.separator());
    column->set_list(from.list());
    column->set_length(from.length());
  }
  return columns;
}

}  // namespace

bool HasField(const google::protobuf::Message& message, absl::string_view name) {
  const auto* const field = message.GetDescriptor()->FindFieldByName(std::string(name));
  const auto* const reflection = message.GetReflection();
  return field != nullptr && (field->is_repeated() ? reflection->FieldSize(message, field) > 0
                                                   : reflection->HasField(message, field));
}

void ValidateColumns(const pb::SourceProto& source, unsigned format, const std::string& key,
                     std::vector<JobProblem>* problems) {
  if (source.columns().empty()) {
    problems->push_back(
        {key + ".columns", "names no columns", "write a list of {name: x, kind: number}", true});
  }
  std::set<std::string> names;
  for (int i = 0; i < source.columns_size(); ++i) {
    const pb::JobColumnProto& column = source.columns(i);
    const std::string column_key = absl::StrCat(key, ".columns[", i, "]");
    if (column.name().empty()) {
      problems->push_back(
          {column_key + ".name", "must not be empty", "the model finds the column by it", true});
    } else if (!names.insert(column.name()).second) {
      problems->push_back({column_key + ".name",
                           absl::StrCat("is `", column.name(), "`, as is an earlier column's"),
                           "give each column a name of its own"});
    }
    ColumnRules(source, format, column, column_key, problems).Check();
  }
  if ((format & kFieldFormats) == 0) return;  // columns of npy have their own name only
  const FieldColumnList forms = FormsOf(source);
  for (const NameClash& clash : NameClashesOf(forms)) {
    problems->push_back(
        {absl::StrCat(key, ".columns[", clash.column, "].name"),
         absl::StrCat("is `", forms[clash.column].name(), "`, but ", ToText(clash, forms)),
         kNameClashRemedy});
  }
}

}  // namespace mu
