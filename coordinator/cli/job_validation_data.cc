// The rules of a job's data sources.
#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "coordinator/cli/job_validation.h"

namespace mu {
namespace {

void ValidateRecords(const pb::JobRecordsProto& records, const std::string& key,
                     std::vector<JobProblem>* problems) {
  if (records.modulo() == 0) {
    problems->push_back(
        {key + ".modulo", "must be at least 1", "write {modulo: 10, keep: [9]}", true});
    return;
  }
  if (records.keep().empty()) {
    problems->push_back({key + ".keep", "names no records", "write {modulo: 10, keep: [9]}", true});
  }
  std::set<uint32_t> seen;
  for (int i = 0; i < records.keep_size(); ++i) {
    const std::string item = absl::StrCat(key, ".keep[", i, "]");
    const uint32_t kept = records.keep(i);
    if (kept >= records.modulo()) {
      problems->push_back({item,
                           absl::StrCat("is ", kept, ", but remainders of ", records.modulo(),
                                        " are 0 to ", records.modulo() - 1),
                           "raise `modulo` or lower it"});
    } else if (!seen.insert(kept).second) {
      problems->push_back({item, absl::StrCat("is ", kept, " a second time"), "remove it"});
    }
  }
}

class ColumnRules {
 public:
  ColumnRules(const pb::SourceProto& source, const pb::JobColumnProto& column, std::string key,
              std::vector<JobProblem>* problems)
      : source_(source), column_(column), key_(std::move(key)), problems_(problems) {}

  void Check() {
    const std::string& kind = column_.kind();
    const bool list = kind == "id" || kind == "hash";
    if (kind != "number" && kind != "label" && !list) {
      Add("kind",
          absl::StrCat("must be number, id, hash or label", kind.empty() ? "" : ", not `", kind,
                       kind.empty() ? "" : "`"),
          "", true);
      return;
    }
    CheckField();
    if (list && column_.has_buckets() && column_.buckets() <= 0) {
      Add("buckets", "must be above 0",
          kind == "id" ? "leave it out for ids without a bound" : "leave it out for 100000");
    }
    if (column_.has_buckets() && !list)
      Add("buckets", "is for columns of kind id and hash", "remove it");
    if (kind == "label" && column_.positive().empty()) {
      Add("positive", "must name the texts that mean 1", "write for example [\"1\"]", true);
    }
    if (!column_.positive().empty() && kind != "label") {
      Add("positive", "is for columns of kind label", "remove it");
    }
    if (column_.has_missing_value() && kind != "number") {
      Add("missing_value", "is for columns of kind number", "remove it");
    }
    if (!column_.has_separator()) return;
    const std::string delimiter = source_.has_delimiter() ? source_.delimiter() : ",";
    if (!list) {
      Add("separator", "is for columns of kind id and hash", "remove it");
    } else if (column_.separator().size() != 1 || column_.separator() == delimiter) {
      Add("separator", "must be one character, another than `delimiter`",
          "write for example \"|\"");
    }
  }

 private:
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

  void Add(const std::string& key, std::string message, std::string remedy, bool required = false) {
    problems_->push_back(
        {absl::StrCat(key_, ".", key), std::move(message), std::move(remedy), required});
  }

  const pb::SourceProto& source_;
  const pb::JobColumnProto& column_;
  const std::string key_;
  std::vector<JobProblem>* const problems_;
};

void ValidateCsv(const pb::SourceProto& source, const std::string& key,
                 std::vector<JobProblem>* problems) {
  const auto one_byte = [&](const std::string& text) {
    return text.size() == 1 && text != "\n" && text != "\r";
  };
  if (source.has_delimiter() && !one_byte(source.delimiter())) {
    problems->push_back(
        {key + ".delimiter", "must be one character", "write for example \",\" or \"\\t\""});
  }
  if (source.has_quote() && !source.quote().empty() && !one_byte(source.quote())) {
    problems->push_back(
        {key + ".quote", "must be one character or empty", "\"\" turns quotes off"});
  } else if (source.has_quote() &&
             source.quote() == (source.has_delimiter() ? source.delimiter() : ",")) {
    problems->push_back(
        {key + ".quote", "is the same as `delimiter`", "write \"\" to turn quotes off"});
  }
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
    ColumnRules(source, column, column_key, problems).Check();
  }
}

void ValidateLibsvm(const pb::SourceProto& source, const std::string& key,
                    std::vector<JobProblem>* problems) {
  if (source.features() > 0) return;
  problems->push_back({key + ".features", "must be above every id of the files",
                       "a file with ids from 1 to 123 has features: 124", true});
}

void RefuseLibsvmKeys(const pb::SourceProto& source, const std::string& key,
                      std::vector<JobProblem>* problems) {
  const std::string what = absl::StrCat("is for format libsvm, not for ", source.format());
  if (source.has_features()) problems->push_back({key + ".features", what, "remove it"});
  if (!source.positive().empty()) {
    problems->push_back(
        {key + ".positive", what,
         source.format() == "csv" ? "write it in the label's column" : "remove it"});
  }
}

// Keys that only `csv` has.
void RefuseCsvKeys(const pb::SourceProto& source, const std::string& key,
                   std::vector<JobProblem>* problems) {
  const auto refuse = [&](bool written, const std::string& name) {
    if (!written) return;
    problems->push_back({absl::StrCat(key, ".", name),
                         absl::StrCat("is for format csv, not for ", source.format()),
                         "remove it"});
  };
  refuse(source.has_header(), "header");
  refuse(source.has_delimiter(), "delimiter");
  refuse(source.has_quote(), "quote");
  refuse(!source.missing().empty(), "missing");
  refuse(source.has_trim(), "trim");
  refuse(!source.columns().empty(), "columns");
}

}  // namespace

void ValidateSource(const pb::SourceProto& source, const std::string& key,
                    std::vector<JobProblem>* problems) {
  if (source.format() == "csv") {
    ValidateCsv(source, key, problems);
  } else if (source.format() == "criteo_tsv" || source.format() == "libsvm") {
    RefuseCsvKeys(source, key, problems);
  } else {
    problems->push_back(
        {key + ".format",
         absl::StrCat("must be criteo_tsv, csv or libsvm, not `", source.format(), "`"),
         "write format: csv, format: criteo_tsv or format: libsvm", true});
  }
  if (source.format() == "libsvm") {
    ValidateLibsvm(source, key, problems);
  } else {
    RefuseLibsvmKeys(source, key, problems);
  }
  if (source.files().empty()) {
    problems->push_back({key + ".files", "names no files", "write a list of paths or globs", true});
  }
  for (int i = 0; i < source.files_size(); ++i) {
    if (source.files(i).empty()) {
      problems->push_back(
          {absl::StrCat(key, ".files[", i, "]"), "must not be empty", "write a path or a glob"});
    }
  }
  if (source.has_records()) ValidateRecords(source.records(), key + ".records", problems);
  if (source.has_on_bad_record() && source.on_bad_record() != "fail" &&
      source.on_bad_record() != "skip") {
    problems->push_back({key + ".on_bad_record",
                         absl::StrCat("must be fail or skip, not `", source.on_bad_record(), "`"),
                         ""});
  }
  if (source.has_visitation() && source.visitation() != "exactly_once" &&
      source.visitation() != "none") {
    problems->push_back(
        {key + ".visitation",
         absl::StrCat("must be exactly_once or none, not `", source.visitation(), "`"), ""});
  } else if (source.visitation() == "none" && key != "data.train") {
    problems->push_back({key + ".visitation",
                         "is for data.train: evaluation and prediction use each record once",
                         "remove it"});
  }
  if (source.has_shuffle() && key != "data.train") {
    problems->push_back({key + ".shuffle",
                         "is for data.train: the order of records changes no evaluation, and "
                         "predictions keep that of the files",
                         "remove it"});
  }
}

}  // namespace mu
